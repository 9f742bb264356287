#pragma once

// When to try again: exponentially longer pauses with jitter, bounded by a longest pause and by a total deadline.
//
// Thread rule: one thread at a time.

#include <cstdint>
#include <optional>

#include <hawser/time.h>

#include "base/rng.h"

namespace hawser::proto {

struct BackoffOptions {
  Duration first = std::chrono::milliseconds(10);
  Duration longest = std::chrono::seconds(1);
  std::uint32_t factor = 2;
  double jitter = 0.5;  ///< A pause is drawn evenly from [(1 - jitter) * full, full]. 0 to 1.
};

class Backoff {
 public:
  /// `deadline`: no attempt starts at or after it.
  Backoff(const BackoffOptions& options, Instant deadline)
      : options_(options), deadline_(deadline), full_(options.first) {}

  /// When to make the next attempt; nothing when there is no time left for one.
  std::optional<Instant> next(Instant now, base::Rng& rng);
  /// It worked: the next failure begins anew, under this deadline.
  void reset(Instant deadline);

  std::uint32_t attempts() const { return attempts_; }
  Instant deadline() const { return deadline_; }

 private:
  BackoffOptions options_;
  Instant deadline_;
  Duration full_;  ///< The next pause before jitter.
  std::uint32_t attempts_ = 0;
};

}  // namespace hawser::proto
