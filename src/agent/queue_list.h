#pragma once

// QueueList: the completion queues of an agent, which get hints of what happened besides ends of transfers.
//
// Thread rule: thread-safe. Lifetime: it keeps no queue alive.

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "agent/queue.h"
#include "base/mutex.h"

namespace hawser::agent {

class QueueList {
 public:
  void add(const std::shared_ptr<QueueCore>& queue);
  /// Costs one load in an agent that has no queue.
  void hint(CompletionKind kind, std::uint64_t cookie);

 private:
  base::Mutex mutex_;
  std::vector<std::weak_ptr<QueueCore>> queues_ HAWSER_GUARDED_BY(mutex_);  ///< Some may be gone.
  std::atomic<bool> has_any_{false};
};

}  // namespace hawser::agent
