// Requests from holders of buffers to their owners, and what comes back.

#include "agent/inner_peers.h"
#include "base/inside.h"
#include "rdma/engine.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

constexpr std::size_t kMessagesPerRound = 64;
constexpr std::size_t kRepliesMax = 4096;  ///< To peers without room; beyond, the asker's deadline tells it.
constexpr Duration kReplyPatience = std::chrono::seconds(30);

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

}  // namespace

void Engine::start_atomic(const std::shared_ptr<BatchCore>& batch, std::size_t index, const Op& op) {
  const BufferCore& core = *core_of(op.remote);
  batch->with(index, [&](Item& item) {
    item.is_atomic = true;
    item.op.local = op.local;
  });
  const Ask ask{.kind = op.type == OpType::kFetchAdd ? AskKind::kFetchAdd : AskKind::kCompareSwap,
                .token = core.token,
                .offset = op.remote.offset(),
                .value = op.value,
                .expected = op.expected};
  if (is_own(core)) {
    const Reply done = lent_.run_atomic(ask);
    return batch->settle(index, {.status = done.status, .bytes = sizeof(std::uint64_t), .previous = done.value});
  }
  const Result<Found> found = find(op.remote);
  if (!found) return batch->settle(index, {.status = with_ways(found.error(), op.remote)});
  request(batch, index, op.remote, found->peer, ask);
}

void Engine::request(const std::shared_ptr<BatchCore>& batch, std::size_t index, const RemoteBuffer& buffer, Peer peer,
                     Ask ask, std::shared_ptr<std::string> handle) {
  bool is_full = false;
  {
    const base::MutexLock lock(mutex_);
    is_full = requests_.size() >= options_.requests_max;
    if (!is_full) {
      ask.number = ++next_request_;
      requests_.emplace(ask.number, Request{.batch = batch,
                                            .index = index,
                                            .buffer = buffer,
                                            .handle = std::move(handle),
                                            .peer = std::move(peer),
                                            .bytes = encode(ask),
                                            .sent = false,
                                            .is_release = ask.kind == AskKind::kRelease});
    }
  }
  if (!is_full) {
    (void)send_requests();
    return wake_.signal();
  }
  batch->settle(index, {.status = Status(Code::kBusy, "requests_max = " + std::to_string(options_.requests_max) +
                                                          " requests to owners are under way")
                                      .with_buffer(BufferState::kUntouched)
                                      .with_advice("wait for some to end")});
}

/// Of a request that got no answer: what is known of it.
Status Engine::end_of(const Request& request, bool is_dead) {
  if (is_dead) {
    const Status why = agent::inner::down_status(request.peer);
    return Status(Code::kDisconnected, "the buffer's owner is gone").with_peer(request.peer.name()).because(why);
  }
  const std::string_view what = request.sent ? "the buffer's owner was asked and did not answer in time"
                                             : "the buffer's owner took no request in time";
  Status end = Status(Code::kTimedOut, std::string(what)).with_peer(request.peer.name());
  return request.refusal.ok() ? end : end.because(request.refusal);
}

bool Engine::send_requests() {
  struct Next {
    std::uint64_t number;
    Request request;
    Status end;
  };
  const Instant now = Clock::steady().now();
  std::vector<Next> unsent, over;
  {
    const base::MutexLock lock(mutex_);
    for (auto& [number, request] : requests_) {
      const bool is_dead = request.peer.state() == PeerState::kDown;
      if (!is_dead && now < request.batch->deadline) {
        if (!request.sent) unsent.push_back({.number = number, .request = request, .end = {}});
        continue;
      }
      over.push_back({.number = number, .request = request, .end = end_of(request, is_dead)});
    }
    for (const Next& each : over) requests_.erase(each.number);
  }
  for (const Next& each : over) {
    each.request.batch->settle(each.request.index, {.status = with_ways(each.end, each.request.buffer)});
  }
  for (const Next& each : unsent) {
    {
      const base::MutexLock lock(mutex_);
      const auto still = requests_.find(each.number);
      if (still == requests_.end() || still->second.sent) continue;
      still->second.sent = true;  // Two threads may be here; one of them sends.
    }
    Status refusal = each.request.peer.send(options_.channel, as_bytes(each.request.bytes)).error();
    if (!refusal.ok()) turned_back(each.number, std::move(refusal));
  }
  return !over.empty();
}

/// Its inbox is full or it is gone: seen in the next round. Where no way leads to it the request ends.
void Engine::turned_back(std::uint64_t number, Status refusal) {
  Request request;
  {
    const base::MutexLock lock(mutex_);
    const auto still = requests_.find(number);
    if (still == requests_.end()) return;
    if (refusal.code() != Code::kUnsupported) {
      still->second.sent = false;
      still->second.refusal = std::move(refusal);
      return;
    }
    request = std::move(still->second);
    requests_.erase(still);
  }
  request.batch->settle(request.index,
                        {.status = with_ways(refusal, request.buffer).with_buffer(BufferState::kUntouched)});
}

bool Engine::take_messages() {
  std::size_t count = 0;
  for (; count < kMessagesPerRound; ++count) {
    const std::optional<Message> message = agent_.take_message(options_.channel);
    if (!message) break;
    const Parsed parsed = parse(message->bytes);
    if (parsed.reply) on_reply(message->peer, *parsed.reply);
    if (!parsed.ask) continue;  // Bytes that are none of ours are dropped.
    if (parsed.ask->kind == AskKind::kHandle) {
      reply(message->peer, handle_of(*parsed.ask));
    } else if (parsed.ask->kind == AskKind::kRelease) {
      close(parsed.ask->token, {.batch = {},
                                .peer = message->peer,
                                .number = parsed.ask->number,
                                .deadline = Clock::steady().now() + kReplyPatience});
    } else {
      reply(message->peer, lent_.run_atomic(*parsed.ask));
    }
  }
  return count > 0;
}

void Engine::on_reply(const Peer& from, const Reply& answer) {
  Request asked;
  {
    const base::MutexLock lock(mutex_);
    const auto found = requests_.find(answer.number);
    if (found == requests_.end() || found->second.peer.incarnation() != from.incarnation()) return;
    asked = std::move(found->second);
    requests_.erase(found);
  }
  if (asked.handle) *asked.handle = answer.handle;
  const bool moved = answer.status.ok() && !asked.is_release && !asked.handle;
  asked.batch->settle(asked.index, {.status = answer.status.ok() ? Status() : answer.status.with_peer(from.name()),
                                    .bytes = moved ? sizeof(std::uint64_t) : 0,
                                    .previous = answer.value});
}

void Engine::reply(const Peer& to, const Reply& answer) {
  std::string bytes = encode(answer);
  if (to.send(options_.channel, as_bytes(bytes)).error().code() != Code::kBusy) return;
  const base::MutexLock lock(mutex_);
  if (replies_.size() >= kRepliesMax) return;
  replies_.push_back({.peer = to, .bytes = std::move(bytes), .deadline = Clock::steady().now() + kReplyPatience});
}

bool Engine::send_replies() {
  std::deque<PendingReply> waiting;
  {
    const base::MutexLock lock(mutex_);
    waiting.swap(replies_);
  }
  if (waiting.empty()) return false;
  const std::size_t before = waiting.size();
  const Instant now = Clock::steady().now();
  std::erase_if(waiting, [&](const PendingReply& each) {
    return now >= each.deadline || each.peer.send(options_.channel, as_bytes(each.bytes)).error().code() != Code::kBusy;
  });
  const base::MutexLock lock(mutex_);
  const bool moved = waiting.size() != before;
  for (PendingReply& each : waiting) replies_.push_back(std::move(each));
  return moved;
}

}  // namespace rdma
HAWSER_NAMESPACE_END
