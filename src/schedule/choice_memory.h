#pragma once

// ChoiceMemory: which algorithm is the cheapest, remembered for the calls that a rank makes again and again. To work it
// out takes a tenth of a small call on boards.
//
// A call is remembered where a number holds all that its costs depend on: there are as many elements for each rank.
// Which ranks share a host is the same for all calls that have `hosts`. There is a fixed number of places. Calls that
// share one push each other out.
//
// Thread rule: thread-safe, but for `forget`, while which no other thread may ask.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "schedule/collective.h"

namespace hawser::schedule {

class ChoiceMemory {
 public:
  static constexpr std::size_t kPlaces = 64;

  /// schedule::cheapest. All calls between two of `forget` are of the same number of ranks, the same hosts, where
  /// they have some, and the same model.
  Algorithm cheapest(const Call& call, const CostModel& model);
  /// The model, the number of ranks, or their hosts are others from now on.
  void forget();
  /// So many calls were worked out.
  std::uint64_t misses() const { return misses_.load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<std::uint64_t>, kPlaces> words_{};  ///< Calls and their choices. 0: there is none.
  std::atomic<std::uint64_t> misses_{0};
};

}  // namespace hawser::schedule
