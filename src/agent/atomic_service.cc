#include "agent/atomic_service.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <utility>

#include "agent/peer_core.h"
#include "agent/queue.h"
#include "agent/session.h"
#include "base/planted.h"

namespace hawser::agent {
namespace {

constexpr std::array kChannels = {
    OwnChannel{.id = wire::kAtomicChannel, .window = kAtomicsWindow, .priority = Priority::kCritical},
    OwnChannel{.id = wire::kAtomicAnswerChannel, .window = kAtomicsWindow, .priority = Priority::kCritical}};

std::string_view refusal_text(Code code) {
  switch (code) {
    case Code::kNotFound:
      return "its owner has closed the region";
    case Code::kDenied:
      return "its owner gives no right to read and write the region";
    case Code::kInvalid:
      return "the word is not aligned to 8 in its owner's memory, or leaves the region";
    default:
      return "its owner refused it";
  }
}

}  // namespace

AtomicService::Asked::~Asked() {
  for (const auto& [id, op] : ops) deadlines.clear(*op);
}

std::span<const OwnChannel> AtomicService::channels() const { return kChannels; }

AtomicService::Asked* AtomicService::known(const Session& session) const {
  return static_cast<Asked*>(session.tenancies[place()].get());
}

AtomicService::Asked& AtomicService::of(Session& session) {
  std::unique_ptr<Tenancy>& its = session.tenancies[place()];
  if (its == nullptr) its = std::make_unique<Asked>(deadlines_);
  session.has_tenancies = true;
  return static_cast<Asked&>(*its);
}

Status AtomicService::start(Session& session, const std::shared_ptr<AtomicCore>& op, Instant now) {
  Asked& asked = of(session);
  if (asked.ops.size() >= kAtomicsMax) {
    return Status(Code::kBusy, "atomic: " + std::to_string(kAtomicsMax) + " operations on words of " + op->peer->name +
                                   " are in flight")
        .with_peer(op->peer->name)
        .with_advice("wait for some to end");
  }
  op->ask.id = next_id_++;
  asked.ops.emplace(op->ask.id, op);
  asked.unsent.push_back(op->ask.id);
  deadlines_.set(*op, op->deadline);
  carrier_.serve(session, now);
  return {};
}

void AtomicService::cancel(Session& session, AtomicCore& op, Instant now) {
  if (op.final.load(std::memory_order_relaxed)) return;
  end_one(session, op.ask.id, Status(Code::kCancelled, "the atomic operation was cancelled"));
  if (session.is_told_in_vain()) carrier_.serve(session, now);
}

void AtomicService::on_control(Session& session) {
  if (!base::planted(base::Planted::kAtomicAskedTwice)) return;
  Asked& asked = of(session);
  for (const auto& [id, op] : asked.ops) asked.unsent.push_back(id);
}

bool AtomicService::pump(Session& session, std::size_t* work) {
  Asked* const asked = known(session);
  if (asked == nullptr) return true;
  wire::AtomicBuffer buffer;
  while (!asked->answers.empty()) {
    const Sent sent =
        carrier_.carry(session, wire::kAtomicAnswerChannel, wire::encode(asked->answers.front().answer, buffer), {});
    if (sent == Sent::kNoCredit) break;
    if (sent == Sent::kNoRoom) return false;
    carrier_.release_message(session, wire::kAtomicChannel, asked->answers.front().ask_bytes);
    asked->answers.pop_front();
    ++*work;
  }
  while (!asked->unsent.empty()) {
    const auto found = asked->ops.find(asked->unsent.front());
    if (found != asked->ops.end()) {
      const Sent sent = carrier_.carry(session, wire::kAtomicChannel, wire::encode(found->second->ask, buffer), {});
      if (sent == Sent::kNoCredit) break;
      if (sent == Sent::kNoRoom) return false;
      found->second->sent = true;
      ++*work;
    }
    asked->unsent.pop_front();
  }
  return true;
}

Status AtomicService::on_message(Session& session, std::uint32_t channel, std::span<const std::byte> bytes,
                                 Instant now) {
  return channel == wire::kAtomicChannel ? on_ask(session, bytes, now) : on_answer(session, bytes);
}

Status AtomicService::on_ask(Session& session, std::span<const std::byte> bytes, Instant now) {
  const Result<wire::AtomicAsk> ask = wire::decode_atomic_ask(bytes);
  if (!ask) return ask.error();
  of(session).answers.push_back({.answer = run(session, *ask), .ask_bytes = bytes.size()});
  carrier_.serve(session, now);
  return {};
}

wire::AtomicAnswer AtomicService::run(Session& session, const wire::AtomicAsk& ask) {
  wire::AtomicAnswer answer{.id = ask.id};
  const auto refuse = [&](Code code) {
    ++session.flow.errors;
    answer.code = code;
    return answer;
  };
  const bool any_right = base::planted(base::Planted::kAtomicRightsUnchecked);
  const auto entry = regions_.find(ask.region, ask.generation, ask.key, any_right ? Rights::kNone : Rights::kReadWrite,
                                   session.peer->incarnation);
  if (!entry) return refuse(entry.error().code());
  if ((*entry)->once != nullptr) return refuse(Code::kDenied);
  if ((*entry)->device.kind != DeviceKind::kHost) return refuse(Code::kUnsupported);
  const bool fits = backend::in_bounds(ask.offset, sizeof(std::uint64_t), (*entry)->size);
  if (!fits && !base::planted(base::Planted::kAtomicBoundsUnchecked)) return refuse(Code::kInvalid);
  std::byte* const at = (*entry)->base + ask.offset;
  if (reinterpret_cast<std::uintptr_t>(at) % sizeof(std::uint64_t) != 0) return refuse(Code::kInvalid);
  const std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(at));
  if (ask.kind == wire::AtomicKind::kFetchAdd) {
    answer.found = word.fetch_add(ask.operand, std::memory_order_acq_rel);
  } else if (base::planted(base::Planted::kAtomicNotCompared)) {
    answer.found = word.exchange(ask.operand, std::memory_order_acq_rel);
  } else {
    answer.found = ask.expected;
    (void)word.compare_exchange_strong(answer.found, ask.operand, std::memory_order_acq_rel);
  }
  inbox_.count_arrival();  // The word may be a signal that somebody waits for.
  carrier_.note_end();
  return answer;
}

Status AtomicService::on_answer(Session& session, std::span<const std::byte> bytes) {
  Result<wire::AtomicAnswer> answer = wire::decode_atomic_answer(bytes);
  if (!answer) return answer.error();
  if (!base::planted(base::Planted::kAtomicAnswerCreditLost)) {
    carrier_.release_message(session, wire::kAtomicAnswerChannel, bytes.size());
  }
  Asked& asked = of(session);
  const bool mistaken = base::planted(base::Planted::kAtomicAnswerMistaken) && !asked.ops.empty();
  if (mistaken) answer->id = asked.ops.begin()->first;
  if (answer->code == Code::kOk) {
    end_one(session, answer->id, Status(), answer->found);
    return {};
  }
  const auto found = asked.ops.find(answer->id);
  if (found != asked.ops.end()) found->second->sent = false;  // It was refused: the word is untouched.
  end_one(session, answer->id, Status(answer->code, "atomic: " + std::string(refusal_text(answer->code))));
  return {};
}

/// Ends that one, if it has not ended before.
void AtomicService::end_one(Session& session, std::uint64_t id, Status status, std::uint64_t found) {
  Asked& asked = of(session);
  const auto at = asked.ops.find(id);
  if (at == asked.ops.end()) return;
  const std::shared_ptr<AtomicCore> op = std::move(at->second);
  asked.ops.erase(at);
  deadlines_.clear(*op);
  // Or operations that are cancelled again and again would pile up there while the peer grants no credit.
  if (!op->sent) std::erase(asked.unsent, id);
  if (!status.ok()) {
    ++session.flow.errors;
    const bool unknown = op->sent && !base::planted(base::Planted::kAtomicOutcomeClaimed);
    status =
        status.with_peer(session.peer->name).with_buffer(unknown ? BufferState::kUnknown : BufferState::kUntouched);
    if (op->sent) status = status.with_advice("it may have been done: read the word before trying again");
  }
  const std::shared_ptr<QueueCore> queue = std::move(op->queue);
  const std::uint64_t bytes = status.ok() ? sizeof(std::uint64_t) : 0;
  op->peer.reset();
  op->status = std::move(status);
  op->found = found;
  op->final.store(true, std::memory_order_release);
  // Who takes the entry may ask the handle at once.
  if (queue) {
    queue->push({.kind = CompletionKind::kTransfer, .cookie = op->cookie, .bytes = bytes, .status = op->status});
  }
  carrier_.note_end();
}

void AtomicService::end(Session& session, const Status& status) {
  Asked* const asked = known(session);
  if (asked == nullptr || base::planted(base::Planted::kAtomicsNotEnded)) return;
  asked->unsent.clear();
  while (!asked->ops.empty()) end_one(session, asked->ops.begin()->first, status);
}

bool AtomicService::awaits(const Session& session) const {
  const Asked* const asked = known(session);
  return asked != nullptr && !asked->ops.empty();
}

std::size_t AtomicService::left(const Session& session) const {
  const Asked* const asked = known(session);
  return asked == nullptr ? 0 : asked->ops.size() + asked->unsent.size() + asked->answers.size();
}

std::size_t AtomicService::expire(Instant now) {
  std::size_t ended = 0;
  while (AtomicCore* const op = deadlines_.take(now)) {
    Session& session = *op->peer->session();
    const std::string_view text = op->sent ? "the atomic operation was not answered by its deadline"
                                           : "the atomic operation could not be sent by its deadline";
    end_one(session, op->ask.id, Status(Code::kTimedOut, std::string(text)));
    if (session.is_told_in_vain()) carrier_.serve(session, now);
    ++ended;
  }
  return ended;
}

void AtomicService::describe(const Visitor& visitor) const {
  std::map<const PeerCore*, Waiting> all;
  deadlines_.for_each([&](const AtomicCore& op) {
    const auto [at, is_first] = all.try_emplace(
        op.peer.get(),
        Waiting{.who = name(), .what = "an answer", .peer = op.peer->name, .count = 0, .since = Instant::max()});
    Waiting& its = at->second;
    ++its.count;
    its.since = std::min(its.since, op.submitted);
    its.until = std::min(its.until, op.deadline);
  });
  for (const auto& [peer, waiting] : all) visitor(waiting);
}

}  // namespace hawser::agent
