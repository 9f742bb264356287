// Atomic operations in the engine: asked of the owner of the word, and done here for words of our own.
//
// Asks travel on the session's reliable link, which delivers each once whatever paths come and go; that is what makes
// them done once. What ends early after it was sent is of unknown outcome, and is never asked again.

#include <algorithm>
#include <array>
#include <atomic>

#include "agent/atomic.h"
#include "agent/core.h"
#include "agent/engine.h"
#include "agent/queue.h"
#include "base/planted.h"

namespace hawser::agent {
namespace {

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

Status Engine::start_atomic(const std::shared_ptr<AtomicCore>& op, Instant now) {
  if (closing_) return Status(Code::kInvalid, "atomic: agent '" + core_.identity.name + "' is closing");
  if (op->peer->state.load(std::memory_order_relaxed) == PeerState::kDown) return core_.down_status(*op->peer);
  Session& its_session = session(op->peer);
  if (its_session.atomics.size() >= kAtomicsMax) {
    return Status(Code::kBusy, "atomic: " + std::to_string(kAtomicsMax) + " operations on words of " + op->peer->name +
                                   " are in flight")
        .with_peer(op->peer->name)
        .with_advice("wait for some to end");
  }
  op->ask.id = next_atomic_++;
  its_session.atomics.emplace(op->ask.id, op);
  its_session.atomics_unsent.push_back(op->ask.id);
  earliest_deadline_ = std::min(earliest_deadline_, op->deadline);
  want(its_session, now);
  enlist(its_session);
  return {};
}

void Engine::cancel_atomic(AtomicCore& op) {
  if (op.final.load(std::memory_order_relaxed)) return;
  Session& its_session = session(op.peer);
  end_atomic(its_session, op.ask.id, Status(Code::kCancelled, "the atomic operation was cancelled"));
  if (its_session.is_told_in_vain()) enlist(its_session);
}

/// False when a message found no room: to be tried again after a pause. What lacks credit waits for the peer's word.
bool Engine::pump_atomics(Session& session, std::size_t* work) {
  const auto send_own = [&](std::uint32_t channel, std::span<const std::byte> bytes) {
    const wire::Send message{.seq = session.link_out.next_seq(), .channel = channel, .bytes = bytes};
    std::array<std::byte, wire::kHeadMax> head;
    if (!push_reliable(session, wire::encode(message, head), bytes)) {
      session.channels[channel].out.give_back(bytes.size());
      return false;
    }
    ++*work;
    return true;
  };
  wire::AtomicBuffer buffer;
  while (!session.atomic_answers.empty()) {
    const auto bytes = wire::encode(session.atomic_answers.front().answer, buffer);
    if (!session.channels[wire::kAtomicAnswerChannel].out.try_take(bytes.size())) break;
    if (!send_own(wire::kAtomicAnswerChannel, bytes)) return false;
    release_message(session, wire::kAtomicChannel, session.atomic_answers.front().ask_bytes);
    session.atomic_answers.pop_front();
  }
  while (!session.atomics_unsent.empty()) {
    const auto found = session.atomics.find(session.atomics_unsent.front());
    if (found != session.atomics.end()) {
      const auto bytes = wire::encode(found->second->ask, buffer);
      if (!session.channels[wire::kAtomicChannel].out.try_take(bytes.size())) break;
      if (!send_own(wire::kAtomicChannel, bytes)) return false;
      found->second->sent = true;
    }
    session.atomics_unsent.pop_front();
  }
  return true;
}

Status Engine::on_atomic_ask(Session& session, std::span<const std::byte> bytes) {
  const Result<wire::AtomicAsk> ask = wire::decode_atomic_ask(bytes);
  if (!ask) return ask.error();
  session.atomic_answers.push_back({.answer = run_atomic(session, *ask), .ask_bytes = bytes.size()});
  enlist(session);
  return {};
}

wire::AtomicAnswer Engine::run_atomic(Session& session, const wire::AtomicAsk& ask) {
  wire::AtomicAnswer answer{.id = ask.id};
  const auto refuse = [&](Code code) {
    ++session.flow.errors;
    answer.code = code;
    return answer;
  };
  const bool any_right = base::planted(base::Planted::kAtomicRightsUnchecked);
  const auto entry =
      core_.regions.find(ask.region, ask.generation, ask.key, any_right ? Rights::kNone : Rights::kReadWrite);
  if (!entry) return refuse(entry.error().code());
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
  core_.inbox.count_arrival();  // The word may be a signal that somebody waits for.
  ++finalized_;
  return answer;
}

Status Engine::on_atomic_answer(Session& session, std::span<const std::byte> bytes) {
  Result<wire::AtomicAnswer> answer = wire::decode_atomic_answer(bytes);
  if (!answer) return answer.error();
  if (!base::planted(base::Planted::kAtomicAnswerCreditLost)) {
    release_message(session, wire::kAtomicAnswerChannel, bytes.size());
  }
  const bool mistaken = base::planted(base::Planted::kAtomicAnswerMistaken) && !session.atomics.empty();
  if (mistaken) answer->id = session.atomics.begin()->first;
  if (answer->code == Code::kOk) {
    end_atomic(session, answer->id, Status(), answer->found);
    return {};
  }
  const auto found = session.atomics.find(answer->id);
  if (found != session.atomics.end()) found->second->sent = false;  // It was refused: the word is untouched.
  end_atomic(session, answer->id, Status(answer->code, "atomic: " + std::string(refusal_text(answer->code))));
  return {};
}

/// Ends that one, if it has not ended before.
void Engine::end_atomic(Session& session, std::uint64_t id, Status status, std::uint64_t found) {
  const auto at = session.atomics.find(id);
  if (at == session.atomics.end()) return;
  const std::shared_ptr<AtomicCore> op = std::move(at->second);
  session.atomics.erase(at);
  // Or operations that are cancelled again and again would pile up there while the peer grants no credit.
  if (!op->sent) std::erase(session.atomics_unsent, id);
  if (!status.ok()) {
    ++session.flow.errors;
    const bool unknown = op->sent && !base::planted(base::Planted::kAtomicOutcomeClaimed);
    status =
        status.with_peer(session.peer->name).with_buffer(unknown ? BufferState::kUnknown : BufferState::kUntouched);
    if (op->sent) status = status.with_advice("it may have been done: read the word before trying again");
  }
  if (op->queue) {
    const std::uint64_t bytes = status.ok() ? sizeof(std::uint64_t) : 0;
    op->queue->push({.kind = CompletionKind::kTransfer, .cookie = op->cookie, .bytes = bytes, .status = status});
  }
  op->queue.reset();
  op->peer.reset();
  op->status = std::move(status);
  op->found = found;
  op->final.store(true, std::memory_order_release);
  ++finalized_;
}

void Engine::end_atomics(Session& session, const Status& status) {
  if (base::planted(base::Planted::kAtomicsNotEnded)) return;
  session.atomics_unsent.clear();
  while (!session.atomics.empty()) end_atomic(session, session.atomics.begin()->first, status);
}

std::size_t Engine::expire_atomics(Instant now, Instant* earliest) {
  std::size_t ended = 0;
  for (Session* session : sessions_) {
    for (auto at = session->atomics.begin(); at != session->atomics.end();) {
      const auto& [id, op] = *at++;
      if (now < op->deadline) {
        *earliest = std::min(*earliest, op->deadline);
        continue;
      }
      ++ended;
      end_atomic(*session, id,
                 Status(Code::kTimedOut, op->sent ? "the atomic operation was not answered by its deadline"
                                                  : "the atomic operation could not be sent by its deadline"));
      if (session->is_told_in_vain()) enlist(*session);
    }
  }
  return ended;
}

}  // namespace hawser::agent
