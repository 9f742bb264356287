#pragma once

// ShortWhile: whether something was done a moment ago, for one who would do it again before each call of a few
// microseconds. Where the processor's counter does not keep the time, it never was.
//
// Thread rule: confined, or under its owner's lock.

#include <cstdint>

namespace hawser::base {

/// True where the system keeps its time by the processor's counter: reading it is cheap, and it does not stop.
bool counter_keeps_time() noexcept;

/// The processor's counter; 0 where none is used.
#if defined(__x86_64__)
inline std::uint64_t counter_ticks() { return __builtin_ia32_rdtsc(); }
#else
inline std::uint64_t counter_ticks() { return 0; }
#endif

class ShortWhile {
 public:
  ShortWhile() = default;
  /// It lasts so many ticks of the counter. None runs slower than 1 GHz, so they are at most as many nanoseconds.
  explicit ShortWhile(std::uint64_t length_ticks) : length_(counter_keeps_time() ? length_ticks : 0) {}

  /// Begins now.
  void begin() {
    if (length_ == 0) return;
    began_ = counter_ticks();
    asked_ = 0;
  }
  /// True where it began, and has not ended.
  bool lasts() {
    if (length_ == 0 || asked_ == kAskedMax || counter_ticks() - began_ >= length_) return false;
    ++asked_;
    return true;
  }

 private:
  static constexpr std::uint32_t kAskedMax = 64;  ///< So that a counter that stands still stops nothing.

  std::uint64_t length_ = 0, began_ = 0;
  std::uint32_t asked_ = kAskedMax;
};

}  // namespace hawser::base
