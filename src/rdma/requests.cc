#include "rdma/requests.h"

#include <string_view>
#include <utility>
#include <vector>

#include "agent/inner_peers.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

void Requests::ask(Question question) {
  bool is_full = false;
  {
    const base::MutexLock lock(mutex_);
    is_full = all_.size() >= most_;
    if (!is_full) {
      question.ask.number = ++last_number_;
      all_.emplace(question.ask.number, Request{.batch = question.batch,
                                                .index = question.index,
                                                .buffer = std::move(question.buffer),
                                                .handle = std::move(question.handle),
                                                .peer = std::move(question.owner),
                                                .bytes = encode(question.ask),
                                                .sent = false,
                                                .refusal = {},
                                                .is_release = question.ask.kind == AskKind::kRelease});
    }
  }
  if (!is_full) {
    (void)turn(Clock::steady().now());
    return uses_.wake.signal();
  }
  question.batch->settle(question.index, {.status = Status(Code::kBusy, "requests_max = " + std::to_string(most_) +
                                                                            " requests to owners are under way")
                                                        .with_buffer(BufferState::kUntouched)
                                                        .with_advice("wait for some to end")});
}

/// Of a request that got no answer: what is known of it.
Status Requests::end_of(const Request& request, bool is_dead) {
  if (is_dead) {
    const Status why = agent::inner::down_status(request.peer);
    return Status(Code::kDisconnected, "the buffer's owner is gone").with_peer(request.peer.name()).because(why);
  }
  const std::string_view what = request.sent ? "the buffer's owner was asked and did not answer in time"
                                             : "the buffer's owner took no request in time";
  Status end = Status(Code::kTimedOut, std::string(what)).with_peer(request.peer.name());
  return request.refusal.ok() ? end : end.because(request.refusal);
}

bool Requests::turn(Instant now) {
  struct Next {
    std::uint64_t number;
    Request request;
    Status end;
  };
  std::vector<Next> unsent, over;
  {
    const base::MutexLock lock(mutex_);
    for (auto& [number, request] : all_) {
      const bool is_dead = request.peer.state() == PeerState::kDown;
      if (!is_dead && now < request.batch->deadline) {
        if (!request.sent) unsent.push_back({.number = number, .request = request, .end = {}});
        continue;
      }
      over.push_back({.number = number, .request = request, .end = end_of(request, is_dead)});
    }
    for (const Next& each : over) all_.erase(each.number);
  }
  for (const Next& each : over) {
    each.request.batch->settle(each.request.index, {.status = uses_.ways.with_ways(each.end, each.request.buffer)});
  }
  for (const Next& each : unsent) {
    {
      const base::MutexLock lock(mutex_);
      const auto still = all_.find(each.number);
      if (still == all_.end() || still->second.sent) continue;
      still->second.sent = true;  // Two threads may be here; one of them sends.
    }
    Status refusal = uses_.send(each.request.peer, each.request.bytes);
    if (!refusal.ok()) turned_back(each.number, std::move(refusal));
  }
  return !over.empty();
}

/// Its inbox is full or it is gone: seen in the next round. Where no way leads to it the request ends.
void Requests::turned_back(std::uint64_t number, Status refusal) {
  Request request;
  {
    const base::MutexLock lock(mutex_);
    const auto still = all_.find(number);
    if (still == all_.end()) return;
    if (refusal.code() != Code::kUnsupported) {
      still->second.sent = false;
      still->second.refusal = std::move(refusal);
      return;
    }
    request = std::move(still->second);
    all_.erase(still);
  }
  request.batch->settle(request.index,
                        {.status = uses_.ways.with_ways(refusal, request.buffer).with_buffer(BufferState::kUntouched)});
}

void Requests::on_reply(const Peer& from, const Reply& answer) {
  Request asked;
  {
    const base::MutexLock lock(mutex_);
    const auto found = all_.find(answer.number);
    if (found == all_.end() || found->second.peer.incarnation() != from.incarnation()) return;
    asked = std::move(found->second);
    all_.erase(found);
  }
  if (asked.handle) *asked.handle = answer.handle;
  const bool moved = answer.status.ok() && !asked.is_release && !asked.handle;
  asked.batch->settle(asked.index, {.status = answer.status.ok() ? Status() : answer.status.with_peer(from.name()),
                                    .bytes = moved ? sizeof(std::uint64_t) : 0,
                                    .previous = answer.value});
}

void Requests::cancelled(BatchCore& batch) {
  std::vector<std::size_t> unsent;
  {
    const base::MutexLock lock(mutex_);
    for (const auto& [number, request] : all_) {
      if (request.batch.get() == &batch && !request.is_release) unsent.push_back(request.index);
    }
    std::erase_if(all_, [&](const auto& each) { return each.second.batch.get() == &batch && !each.second.is_release; });
  }
  // An atomic that was sent may be done or not.
  for (const std::size_t index : unsent) batch.settle(index, {.status = Status(Code::kCancelled, "atomic: cancelled")});
}

bool Requests::empty() const {
  const base::MutexLock lock(mutex_);
  return all_.empty();
}

void Requests::clear() {
  std::map<std::uint64_t, Request> all;  // Dropped without the lock.
  const base::MutexLock lock(mutex_);
  all.swap(all_);
}

}  // namespace rdma
HAWSER_NAMESPACE_END
