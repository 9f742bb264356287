#include "rdma/live_batches.h"

#include <algorithm>
#include <utility>

HAWSER_NAMESPACE_BEGIN
namespace rdma {

std::shared_ptr<BatchCore> LiveBatches::make(std::weak_ptr<Engine> engine, std::size_t size, Duration timeout) {
  const base::MutexLock lock(mutex_);
  auto batch = std::make_shared<BatchCore>(std::move(engine), ++last_serial_, size, Clock::steady().now() + timeout);
  if (size > 0) all_.emplace(batch->serial, batch);
  return batch;
}

std::shared_ptr<BatchCore> LiveBatches::find(std::uint64_t serial) const {
  const base::MutexLock lock(mutex_);
  const auto found = all_.find(serial);
  return found != all_.end() ? found->second : nullptr;
}

void LiveBatches::ended(std::uint64_t serial) {
  std::shared_ptr<BatchCore> kept;  // Dropped without the lock.
  const base::MutexLock lock(mutex_);
  const auto found = all_.find(serial);
  if (found == all_.end()) return;
  kept = std::move(found->second);
  all_.erase(found);
}

LiveBatches::All LiveBatches::take_all() {
  const base::MutexLock lock(mutex_);
  return std::exchange(all_, {});
}

void tell_to_end(const LiveBatches::All& batches) {
  for (const auto& [serial, batch] : batches) {
    batch->cancel();
    for (std::size_t i = 0; i < batch->size(); ++i) {
      bool posted = false;
      batch->with(i, [&](const Item& item) { posted = item.posted; });
      if (!posted) batch->settle(i, {.status = Status(Code::kCancelled, "the rdma backend was closed")});
    }
  }
}

void await_ends(const LiveBatches::All& batches, Instant until) {
  for (const auto& [serial, batch] : batches) {
    (void)batch->wait(std::max(Duration::zero(), until - Clock::steady().now()));
    if (!batch->done()) (void)new std::shared_ptr<BatchCore>(batch);
  }
}

}  // namespace rdma
HAWSER_NAMESPACE_END
