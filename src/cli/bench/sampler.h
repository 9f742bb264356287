#pragma once

// Times of repeated operations, without the clock's own cost.

#include <ctime>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "base/try.h"

namespace hawser::cli::bench {

inline std::int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

/// The time that one pair of looks at the clock adds to the work between them.
inline std::int64_t clock_cost_ns() {
  static const std::int64_t cost = [] {
    std::int64_t least = 1'000'000;
    for (int i = 0; i < 1000; ++i) {
      const std::int64_t start = now_ns();
      least = std::min(least, now_ns() - start);
    }
    return least;
  }();
  return cost;
}

template <typename T>
T median_of(std::vector<T> values) {
  if (values.empty()) return T();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

inline constexpr std::size_t kSamplesMax = 1u << 16;  ///< In one slice.
inline constexpr std::size_t kSamplesMin = 3;

/// Runs `op` (returns Status) over and over for about `budget`, `group` times between two looks at the clock. Returns
/// the median time of one, ns. `singles`, if given, gets the times of the groups, per op.
template <typename Op>
Result<double> sample_ns(Duration budget, std::uint64_t group, std::vector<std::uint64_t>* singles, Op op) {
  std::vector<double> times;
  times.reserve(1024);
  const std::int64_t cost = clock_cost_ns();
  std::int64_t stop = now_ns();
  const std::int64_t end = stop + budget.count();
  while ((stop < end || times.size() < kSamplesMin) && times.size() < kSamplesMax) {
    const std::int64_t start = now_ns();
    for (std::uint64_t i = 0; i < group; ++i) HAWSER_TRY(op());
    stop = now_ns();
    times.push_back(static_cast<double>(std::max<std::int64_t>(stop - start - cost, 1)) / static_cast<double>(group));
  }
  if (singles != nullptr) {
    for (const double time : times) singles->push_back(static_cast<std::uint64_t>(time + 0.5));
  }
  return median_of(std::move(times));
}

}  // namespace hawser::cli::bench
