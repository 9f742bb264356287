#pragma once

// PostedOps: operations that have a plan, from there to their end: submitted at once or when there is room, and looked
// at until they are over.
//
// Thread rule: thread-safe. Neither the agent nor a batch is called under the lock.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include <hawser/agent.h>
#include <hawser/rdma.h>

#include "base/events.h"
#include "base/mutex.h"
#include "rdma/batch.h"
#include "rdma/live_batches.h"
#include "rdma/ways.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

class PostedOps {
 public:
  struct Uses {
    Agent& agent;
    CompletionQueue& queue;  ///< Where transfers report.
    const LiveBatches& batches;
    const Ways& ways;
    const base::EventFd& wake;  ///< Something has to be looked at from now on.
  };
  /// Operations of one batch, which a completion's cookie has room for.
  static constexpr unsigned kIndexBits = 24;
  static constexpr std::size_t kOpsMax = std::size_t{1} << kIndexBits;

  explicit PostedOps(const Uses& uses) : uses_(uses) {}

  /// Submits the operation's plan. `is_near`: it is nearly always over within submit, and does not report to the queue.
  void post(const std::shared_ptr<BatchCore>& batch, std::size_t index, bool is_near) HAWSER_EXCLUDES(mutex_);

  // One round. Each answers whether something moved.
  bool drain_queue() HAWSER_EXCLUDES(mutex_);
  bool post_waiting() HAWSER_EXCLUDES(mutex_);
  bool look_at_watched() HAWSER_EXCLUDES(mutex_);

  bool has_watched() const HAWSER_EXCLUDES(mutex_);
  bool has_waiting() const HAWSER_EXCLUDES(mutex_);
  void clear() HAWSER_EXCLUDES(mutex_);

 private:
  using Ops = std::deque<std::pair<std::shared_ptr<BatchCore>, std::size_t>>;

  const Uses uses_;
  mutable base::Mutex mutex_;
  /// Posted when there is room again. Bounded by the operations of batches in flight.
  Ops waiting_ HAWSER_GUARDED_BY(mutex_);
  /// Those that do not report to the queue, or reported a moment before their end.
  Ops watched_ HAWSER_GUARDED_BY(mutex_);
};

}  // namespace rdma
HAWSER_NAMESPACE_END
