// The door's pools.

#include <hawser/buffer_pool.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "runtime/pool_core.h"

HAWSER_NAMESPACE_BEGIN

namespace {

constexpr std::size_t kKiB = 1024, kMiB = kKiB * 1024;
constexpr std::size_t kTierBytesMax = 1024 * kMiB;  // No buffer of more is made for a receive.
constexpr std::array<BufferPool::Tier, 4> kTraining = {{{.bytes = 64 * kKiB, .count = 256},
                                                        {.bytes = 8 * kMiB, .count = 32},
                                                        {.bytes = 64 * kMiB, .count = 16},
                                                        {.bytes = 256 * kMiB, .count = 4}}};
constexpr std::array<BufferPool::Tier, 3> kInference = {
    {{.bytes = 64 * kKiB, .count = 256}, {.bytes = 8 * kMiB, .count = 16}, {.bytes = 64 * kMiB, .count = 4}}};

Status wrong(const std::string& why) { return {Code::kInvalid, "BufferPool: " + why}; }

Status check(const std::vector<BufferPool::Tier>& sorted) {
  if (sorted.empty() || sorted.size() > BufferPool::kTiersMax) {
    return wrong(std::to_string(sorted.size()) + " tiers; a pool has 1 to " + std::to_string(BufferPool::kTiersMax));
  }
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const auto& [bytes, count] = sorted[i];
    if (bytes == 0 || bytes > kTierBytesMax) {
      return wrong("a tier of buffers of " + std::to_string(bytes) + " bytes; they have 1 to " +
                   std::to_string(kTierBytesMax));
    }
    if (count == 0) return wrong("the tier of " + std::to_string(bytes) + " bytes has no buffers");
    if (i > 0 && sorted[i - 1].bytes == bytes)
      return wrong("two tiers have buffers of " + std::to_string(bytes) + " bytes");
  }
  return {};
}

}  // namespace

BufferPool BufferPool::training() { return *with_tiers(kTraining); }

BufferPool BufferPool::inference() { return *with_tiers(kInference); }

Result<BufferPool> BufferPool::with_tiers(std::span<const Tier> tiers, Beyond beyond) {
  std::vector<Tier> sorted(tiers.begin(), tiers.end());
  std::ranges::sort(sorted, {}, &Tier::bytes);
  if (Status bad = check(sorted); !bad.ok()) return bad;
  return BufferPool(std::make_shared<runtime::PoolCore>(std::move(sorted), beyond));
}

BufferPool::Statistics BufferPool::statistics() const { return core_ == nullptr ? Statistics() : core_->statistics(); }

void BufferPool::trim() {
  if (core_ != nullptr) core_->trim();
}

HAWSER_NAMESPACE_END
