#pragma once

// TurnWatch: how much the turns of one port do, in bytes that streams moved and in calls of streams, and the bound of
// both. It measures work and not time: a busy machine makes a turn slow, but not long.
//
// Thread rule: one thread.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace hawser::backend::stream {

class TurnWatch {
 public:
  struct Work {
    std::uint64_t bytes = 0;
    std::uint32_t calls = 0;
  };

  void begin() { now_ = Work(); }
  void count(std::size_t bytes) {
    now_.bytes += bytes;
    ++now_.calls;
  }
  /// Of this turn, so far.
  const Work& now() const { return now_; }
  /// Ends a turn. In builds with assertions (`dev`, sanitizers) one that did more than `most` is a fault.
  void end(const Work& most) {
    longest_ = {.bytes = std::max(longest_.bytes, now_.bytes), .calls = std::max(longest_.calls, now_.calls)};
#ifndef NDEBUG
    HAWSER_ASSERT(now_.bytes <= most.bytes && now_.calls <= most.calls, "a turn of a stream port was too long");
#else
    static_cast<void>(most);
#endif
  }
  /// Of all turns so far, each for itself.
  const Work& longest() const { return longest_; }

 private:
  Work now_, longest_;
};

}  // namespace hawser::backend::stream
