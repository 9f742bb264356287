#pragma once

// What a transfer should take on a path: latency, bandwidth and a price per piece, from the backend's estimates and
// from what was measured. Enough to order paths; not a promise.
//
// Thread rule: values and pure functions.

#include <cstdint>

#include <hawser/time.h>

#include "backend/backend.h"

namespace hawser::plan {

/// What was measured on one path, as moving averages; zeros mean "not measured yet".
struct Health {
  double latency_ns = 0;
  double bytes_per_ns = 0;
  std::uint64_t samples = 0;

  /// Takes in one good transfer. Those that latency dominates teach latency, the others bandwidth.
  void observe(const backend::Traits& traits, std::uint64_t bytes, std::uint64_t pieces, Duration elapsed);
};

struct Cost {
  double latency_ns = 0;
  double bytes_per_ns = 0;
  double piece_ns = 0;

  /// Measured where there is a measurement, else the backend's estimate.
  static Cost of(const backend::Traits& traits, const Health& health);
  double predict_ns(std::uint64_t bytes, std::uint64_t pieces) const;
};

}  // namespace hawser::plan
