#pragma once

// StagingPatience: how long a peer may hold memory of the FileDesk. A peer that does not move gives it back after
// kStillPeriods, and one that moves a little at a time after kHoldPeriods.
//
// Thread rule: a value, one thread.

#include <cstdint>

namespace hawser::backend::stream {

/// Periods (Machine::next_memory_period) after which a peer that does not move must give back memory of the desk,
inline constexpr std::uint32_t kStillPeriods = 40;
/// and one that moves a little at a time, too.
inline constexpr std::uint32_t kHoldPeriods = 400;

class StagingPatience {
 public:
  /// Whether the peer, which has come to `position`, may hold on in this period.
  bool lasts(std::uint64_t position, std::uint32_t period) {
    if (moved_ != position || since_ == 0) {
      moved_ = position;
      moved_in_ = period;
      if (since_ == 0) since_ = period;
    }
    return period - moved_in_ < kStillPeriods && period - since_ < kHoldPeriods;
  }

 private:
  std::uint32_t since_ = 0, moved_in_ = 0;  ///< Periods.
  std::uint64_t moved_ = 0;
};

}  // namespace hawser::backend::stream
