#include "proto/backoff.h"

#include <algorithm>

namespace hawser::proto {

std::optional<Instant> Backoff::next(Instant now, base::Rng& rng) {
  const double jitter = std::clamp(options_.jitter, 0.0, 1.0);
  // What is cut off is less than 2^63 even for the longest Duration, so the cast back is safe.
  const Duration cut(static_cast<Duration::rep>(static_cast<double>(full_.count()) * jitter * rng.unit()));
  const Instant at = now + std::max(full_ - cut, Duration::zero());
  if (at >= deadline_) return std::nullopt;
  ++attempts_;
  // Compared before multiplying, so that it cannot overflow.
  full_ = full_ > options_.longest / std::max(options_.factor, 1u) ? options_.longest : full_ * options_.factor;
  return at;
}

void Backoff::reset(Instant deadline) {
  deadline_ = deadline;
  full_ = options_.first;
  attempts_ = 0;
}

}  // namespace hawser::proto
