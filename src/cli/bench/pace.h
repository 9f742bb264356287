#pragma once

// Pace: the rate of a stream whose items end in bunches, as the median over stretches of time that are long enough for
// bunches not to matter and short enough for one pause of the machine to stay alone.

#include <cstdint>
#include <vector>

#include <hawser/time.h>

#include "cli/bench/sampler.h"

namespace hawser::cli::bench {

class Pace {
 public:
  Pace(std::uint64_t item_bytes, Duration budget)
      : item_bytes_(item_bytes), start_(now_ns()), end_(start_ + budget.count()) {}

  /// Until the budget is spent and a few stretches are complete.
  bool goes_on() const { return last_ < end_ || stretches_.size() < kSamplesMin; }
  /// One more item ended.
  void count() {
    ++items_;
    last_ = now_ns();
    if (items_ < kItemsMin || last_ - start_ < kStretchNs) return;
    stretches_.push_back(static_cast<double>(items_ * item_bytes_) / static_cast<double>(last_ - start_));
    start_ = last_;
    items_ = 0;
  }
  double gb_per_s() const { return median_of(stretches_); }

 private:
  static constexpr std::uint64_t kItemsMin = 4;
  static constexpr std::int64_t kStretchNs = 2'000'000;
  std::uint64_t item_bytes_;
  std::int64_t start_, end_, last_ = 0;
  std::uint64_t items_ = 0;
  std::vector<double> stretches_;
};

}  // namespace hawser::cli::bench
