#include "rdma/replies.h"

#include <utility>

HAWSER_NAMESPACE_BEGIN
namespace rdma {

void Replies::reply(const Peer& to, const Reply& answer, Instant now) {
  std::string bytes = encode(answer);
  if (send_(to, bytes).code() != Code::kBusy) return;
  const base::MutexLock lock(mutex_);
  if (waiting_.size() >= kWaitingMax) return;
  waiting_.push_back({.peer = to, .bytes = std::move(bytes), .deadline = now + kReplyPatience});
}

bool Replies::send_waiting(Instant now) {
  std::deque<Waiting> waiting;
  {
    const base::MutexLock lock(mutex_);
    waiting.swap(waiting_);
  }
  if (waiting.empty()) return false;
  const std::size_t before = waiting.size();
  std::erase_if(waiting, [&](const Waiting& each) {
    return now >= each.deadline || send_(each.peer, each.bytes).code() != Code::kBusy;
  });
  const base::MutexLock lock(mutex_);
  const bool moved = waiting.size() != before;
  for (Waiting& each : waiting) waiting_.push_back(std::move(each));
  return moved;
}

bool Replies::empty() const {
  const base::MutexLock lock(mutex_);
  return waiting_.empty();
}

void Replies::clear() {
  std::deque<Waiting> waiting;  // Dropped without the lock.
  const base::MutexLock lock(mutex_);
  waiting.swap(waiting_);
}

}  // namespace rdma
HAWSER_NAMESPACE_END
