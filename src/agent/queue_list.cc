#include "agent/queue_list.h"

namespace hawser::agent {

void QueueList::add(const std::shared_ptr<QueueCore>& queue) {
  const base::MutexLock lock(mutex_);
  std::erase_if(queues_, [](const auto& weak) { return weak.expired(); });
  queues_.push_back(queue);
  has_any_.store(true, std::memory_order_release);
}

void QueueList::hint(CompletionKind kind, std::uint64_t cookie) {
  if (!has_any_.load(std::memory_order_acquire)) return;
  const base::MutexLock lock(mutex_);
  for (const auto& weak : queues_) {
    if (const auto queue = weak.lock()) queue->hint(kind, cookie);
  }
}

}  // namespace hawser::agent
