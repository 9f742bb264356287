#pragma once

// StallWatch: for how long a connection stands still, that is: ngtcp2 sends nothing for it any more (see
// `stands_still`), though an acknowledgement that is on its way may still change that.
//
// Thread rule: one thread. A value.

#include <algorithm>
#include <chrono>

#include <hawser/time.h>

namespace hawser::backend::quic {

class StallWatch {
 public:
  /// A connection that stands still ends after three probe timeouts, and after this time: an acknowledgement may be on
  /// its way until then.
  static constexpr Duration kLeast = std::chrono::milliseconds(250);
  static Duration patience(Duration timeout) { return std::max<Duration>(3 * timeout, kLeast); }

  /// True: it has stood still for that long.
  bool note(bool is_still, Instant now, Duration patience) {
    if (!is_still) {
      since_ = Instant::max();
      return false;
    }
    if (since_ == Instant::max()) since_ = now;
    return now - since_ >= patience;
  }
  /// When to look again.
  Instant due(Duration patience) const { return since_ == Instant::max() ? Instant::max() : since_ + patience; }

 private:
  Instant since_ = Instant::max();
};

}  // namespace hawser::backend::quic
