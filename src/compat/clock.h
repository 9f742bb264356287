#pragma once

#include <algorithm>

#include <hawser/time.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {

/// The time that the drop-in's own sockets and asks go by.
inline Instant now() { return Clock::steady().now(); }

/// How long poll() may wait until this deadline: -1 when there is none, else at most a minute. It is rounded up, so
/// that poll() does not return too early.
inline int milliseconds_until(Instant deadline) {
  if (deadline == Instant::max()) return -1;
  const std::int64_t left = (deadline - now()).count() / 1'000'000;
  return static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 60'000));
}

}  // namespace compat
HAWSER_NAMESPACE_END
