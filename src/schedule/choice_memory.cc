#include "schedule/choice_memory.h"

#include <algorithm>

namespace hawser::schedule {
namespace {

constexpr int kAlgorithmBits = 8, kFlagBits = 6, kOperationBits = 4, kElementBits = 6;
constexpr std::uint64_t kChoiceMask = (std::uint64_t{1} << kAlgorithmBits) - 1;
constexpr int kCountBits = 39;
constexpr std::uint64_t kCountMax = (std::uint64_t{1} << kCountBits) - 1;
constexpr std::uint64_t kElementMax = (std::uint64_t{1} << kElementBits) - 1;
static_assert(kAlgorithms < kChoiceMask, "a choice is its number and 1");

/// Two calls with one key have the same costs. 0: that one has none. The bits of the choice are clear.
std::uint64_t key_of(const Call& call) {
  const bool is_even = std::ranges::all_of(call.counts, [&](std::uint64_t each) { return each == call.counts[0]; });
  const std::uint64_t count = call.counts.empty() ? call.count : call.counts[0];
  const bool fits = (call.in_counts.empty() || call.is_even) && is_even && count <= kCountMax &&
                    call.element_bytes <= kElementMax && (call.counts.empty() || call.count == 0);
  if (!fits) return 0;
  std::uint64_t key = count;
  const auto add = [&key](std::uint64_t value, int bits) { key = key << bits | value; };
  add(call.element_bytes, kElementBits);
  add(static_cast<std::uint64_t>(call.operation), kOperationBits);
  for (const bool flag :
       {call.commutes, call.reproducible, call.may_be_mapped, call.may_use_boards, !call.hosts.empty(), true}) {
    add(flag ? 1 : 0, 1);
  }
  static_assert(kCountBits + kElementBits + kOperationBits + kFlagBits + kAlgorithmBits < 64);
  return key << kAlgorithmBits;
}

std::size_t place_of(std::uint64_t key) {
  constexpr std::uint64_t kSpread = 0x9e37'79b9'7f4a'7c15;
  constexpr int kBits = 6;
  static_assert(std::size_t{1} << kBits == ChoiceMemory::kPlaces);
  return static_cast<std::size_t>(key * kSpread >> (64 - kBits));
}

}  // namespace

Algorithm ChoiceMemory::cheapest(const Call& call, const CostModel& model) {
  const std::uint64_t key = key_of(call);
  std::atomic<std::uint64_t>& word = words_[place_of(key)];
  const std::uint64_t known = key == 0 ? 0 : word.load(std::memory_order_relaxed);  // One word: nothing belongs to it.
  if (known != 0 && (known & ~kChoiceMask) == key) return static_cast<Algorithm>((known & kChoiceMask) - 1);
  misses_.fetch_add(1, std::memory_order_relaxed);
  const Algorithm best = schedule::cheapest(call, model);
  if (key != 0) word.store(key | (static_cast<std::uint64_t>(best) + 1), std::memory_order_relaxed);
  return best;
}

void ChoiceMemory::forget() {
  for (std::atomic<std::uint64_t>& word : words_) word.store(0, std::memory_order_relaxed);
}

}  // namespace hawser::schedule
