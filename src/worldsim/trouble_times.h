#pragma once

// TroubleTimes: until when faults that were done to a run excuse that something is late.
//
// Thread rule: one thread. Lifetime: the run's.

#include <algorithm>
#include <chrono>

#include <hawser/time.h>

namespace hawser::worldsim {

/// All ranks' collectives of a world end so soon after one's ended badly, or a rank died: peer_timeout and then some.
inline constexpr Duration kNoticeMax = std::chrono::milliseconds(1500);

class TroubleTimes {
 public:
  /// Links are cut, or processes stopped, from `now` on for `span`.
  void trouble(Instant now, Duration span) {
    troubled_until_ = std::max(troubled_until_, now + span);
    delay(now, span);
  }
  /// What is on its way comes later until then.
  void delay(Instant now, Duration span) { delayed_until_ = std::max(delayed_until_, now + span + kNoticeMax); }

  Instant troubled_until() const { return troubled_until_; }
  Instant delayed_until() const { return delayed_until_; }

 private:
  Instant troubled_until_ = Instant::min(), delayed_until_ = Instant::min();
};

}  // namespace hawser::worldsim
