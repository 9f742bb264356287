#pragma once

// Time as Hawser uses it: durations are nanoseconds, instants come from a Clock that options can replace.
//
// Thread rule: all types here are values; a Clock must be callable from any thread.
// No code below the agent calls a clock: `now` enters once per lane turn and is passed down.

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>

#include <hawser/export.h>

HAWSER_NAMESPACE_BEGIN

using Duration = std::chrono::nanoseconds;

/// A point on one agent's clock. Instants of different clocks must not be compared.
class Instant {
 public:
  constexpr Instant() = default;
  static constexpr Instant from_ns(std::int64_t ns) { return Instant(ns); }
  static constexpr Instant min() { return Instant(std::numeric_limits<std::int64_t>::min()); }
  /// Later than any other instant; as a deadline it means "none".
  static constexpr Instant max() { return Instant(std::numeric_limits<std::int64_t>::max()); }

  constexpr std::int64_t ns() const { return ns_; }

  /// Saturates instead of overflowing, so `now + Duration::max()` is `Instant::max()`.
  friend constexpr Instant operator+(Instant at, Duration by) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(at.ns_, static_cast<std::int64_t>(by.count()), &sum)) {
      return by.count() > 0 ? max() : min();
    }
    return Instant(sum);
  }
  friend constexpr Instant operator-(Instant at, Duration by) {
    std::int64_t difference = 0;
    if (__builtin_sub_overflow(at.ns_, static_cast<std::int64_t>(by.count()), &difference)) {
      return by.count() > 0 ? min() : max();
    }
    return Instant(difference);
  }
  friend constexpr Duration operator-(Instant a, Instant b) {
    std::int64_t difference = 0;
    if (__builtin_sub_overflow(a.ns_, b.ns_, &difference)) {
      return a.ns_ > b.ns_ ? Duration::max() : Duration::min();
    }
    return Duration(difference);
  }
  friend constexpr auto operator<=>(Instant, Instant) = default;

 private:
  constexpr explicit Instant(std::int64_t ns) : ns_(ns) {}
  std::int64_t ns_ = 0;
};

/// Where an agent's time comes from. The simulator hands in a virtual one.
class HAWSER_API Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant now() const = 0;
  /// CLOCK_MONOTONIC of this host. Never destroyed.
  static const Clock& steady();
};

HAWSER_NAMESPACE_END
