#include "runtime/pool_core.h"

#include <algorithm>
#include <new>
#include <utility>

namespace hawser::runtime {

PoolCore::PoolCore(std::vector<BufferPool::Tier> tiers, BufferPool::Beyond beyond) : beyond_(beyond) {
  for (const BufferPool::Tier& each : tiers) {
    largest_ = std::max(largest_, each.bytes);
    Tier tier;
    tier.counts.bytes = each.bytes;
    tier.counts.count = each.count;
    tiers_.push_back(std::move(tier));
  }
}

std::optional<PoolCore::Buffer> PoolCore::take_of(Tier& tier, std::size_t place) {
  BufferPool::TierStatistics& counts = tier.counts;
  Buffer buffer{.bytes = {}, .tier = place};
  if (!tier.free.empty()) {
    buffer.bytes = std::move(tier.free.back());
    tier.free.pop_back();
  } else if (counts.made < counts.count) {
    buffer.bytes.reset(new (std::nothrow) std::byte[counts.bytes]);
    if (buffer.bytes == nullptr) return std::nullopt;
    ++counts.made;
  } else {
    return std::nullopt;
  }
  ++counts.taken;
  counts.most_used = std::max(counts.most_used, ++counts.used);
  return buffer;
}

std::optional<PoolCore::Buffer> PoolCore::take(std::size_t bytes) {
  const base::MutexLock lock(mutex_);
  for (std::size_t place = 0; place < tiers_.size(); ++place) {
    if (tiers_[place].counts.bytes < bytes) continue;
    if (std::optional<Buffer> buffer = take_of(tiers_[place], place)) return buffer;
  }
  ++beyond_count_;
  return std::nullopt;
}

void PoolCore::give_back(Buffer buffer) {
  const base::MutexLock lock(mutex_);
  Tier& tier = tiers_[buffer.tier];
  --tier.counts.used;
  tier.free.push_back(std::move(buffer.bytes));
}

BufferPool::Statistics PoolCore::statistics() const {
  const base::MutexLock lock(mutex_);
  BufferPool::Statistics all;
  all.beyond = beyond_count_;
  for (const Tier& tier : tiers_) {
    all.tiers.push_back(tier.counts);
    all.bytes += tier.counts.bytes * tier.counts.made;
  }
  return all;
}

void PoolCore::trim() {
  std::vector<std::unique_ptr<std::byte[]>> gone;  // Freed without the lock.
  const base::MutexLock lock(mutex_);
  for (Tier& tier : tiers_) {
    tier.counts.made -= static_cast<std::uint32_t>(tier.free.size());
    for (auto& each : tier.free) gone.push_back(std::move(each));
    tier.free.clear();
  }
}

}  // namespace hawser::runtime
