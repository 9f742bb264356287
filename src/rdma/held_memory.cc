#include "rdma/held_memory.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/inside.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

bool holds(const MemoryCore& core, std::span<const std::byte> bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const auto its_begin = reinterpret_cast<std::uintptr_t>(core.bytes.data());
  return begin >= its_begin && bytes.size() <= core.bytes.size() &&
         begin - its_begin <= core.bytes.size() - bytes.size();
}

}  // namespace

// Peers reach this memory as buffers only, which keep it, and operations keep it as well.
MemoryCore::~MemoryCore() {
  if (!bytes.empty() && opener == ::getpid()) part(region, keeper, std::move(owner));
}

LocalMemory HeldMemory::part_of(std::span<std::byte> bytes, const std::shared_ptr<const void>& owner, bool writable,
                                Device device) {
  constexpr int kStepsMax = 16;  // Beyond, it is registered for itself.
  if (bytes.empty()) return {};
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  std::vector<std::shared_ptr<MemoryCore>> seen;  // Let go without the lock: the last one closes its region.
  const base::MutexLock lock(mutex_);
  auto place = held_.upper_bound(begin);
  for (int step = 0; step < kStepsMax && place != held_.begin(); ++step) {
    --place;
    std::shared_ptr<MemoryCore>& core = seen.emplace_back(place->second.lock());
    if (!core) {
      place = held_.erase(place);
      continue;
    }
    if (!holds(*core, bytes) || core->writable != writable || core->device != device) continue;
    const std::uint64_t offset = begin - place->first;
    MemoryCore* const whole = core.get();
    using Kept = std::pair<std::shared_ptr<const void>, std::shared_ptr<MemoryCore>>;
    return LocalMemory({std::make_shared<Kept>(owner, core), whole}, offset, bytes.size());
  }
  return {};
}

void HeldMemory::add(const std::shared_ptr<MemoryCore>& core) {
  const base::MutexLock lock(mutex_);
  if (held_.size() >= most_) {  // Those that are gone; what is left may double until the next time.
    std::erase_if(held_, [](const auto& each) { return each.second.expired(); });
    most_ = std::max(kLeast, 2 * held_.size());
  }
  held_.emplace(reinterpret_cast<std::uintptr_t>(core->bytes.data()), core);
}

std::size_t HeldMemory::size() const {
  const base::MutexLock lock(mutex_);
  return held_.size();
}

}  // namespace rdma
HAWSER_NAMESPACE_END
