#pragma once

// LiveBatches: the batches that have not ended, by their serial numbers.
//
// Thread rule: thread-safe. No batch is called, and none let go, under the lock.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include <hawser/time.h>

#include "base/mutex.h"
#include "rdma/batch.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

class LiveBatches {
 public:
  using All = std::unordered_map<std::uint64_t, std::shared_ptr<BatchCore>>;

  /// A batch of no operations has ended already, and is not kept.
  std::shared_ptr<BatchCore> make(std::weak_ptr<Engine> engine, std::size_t size, Duration timeout)
      HAWSER_EXCLUDES(mutex_);
  /// Null: it has ended, or never was.
  std::shared_ptr<BatchCore> find(std::uint64_t serial) const HAWSER_EXCLUDES(mutex_);
  void ended(std::uint64_t serial) HAWSER_EXCLUDES(mutex_);
  All take_all() HAWSER_EXCLUDES(mutex_);

 private:
  mutable base::Mutex mutex_;
  std::uint64_t last_serial_ HAWSER_GUARDED_BY(mutex_) = 0;
  All all_ HAWSER_GUARDED_BY(mutex_);
};

/// Cancels what is posted, and ends the rest.
void tell_to_end(const LiveBatches::All& batches);
/// What a batch uses that has not ended by then stays for ever: something may still touch it.
void await_ends(const LiveBatches::All& batches, Instant until);

}  // namespace rdma
HAWSER_NAMESPACE_END
