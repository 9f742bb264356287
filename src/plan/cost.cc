#include "plan/cost.h"

#include <algorithm>

namespace hawser::plan {
namespace {

/// Weight of a new sample: half of the past is forgotten after five.
constexpr double kWeight = 1.0 / 8;

double blend(double old, double sample) { return old <= 0 ? sample : old + (sample - old) * kWeight; }

}  // namespace

void Health::observe(const backend::Traits& traits, std::uint64_t bytes, std::uint64_t pieces, Duration elapsed) {
  if (elapsed <= Duration::zero()) return;
  const Cost cost = Cost::of(traits, *this);
  const double piece_ns = cost.piece_ns * static_cast<double>(std::max<std::uint64_t>(pieces, 1) - 1);
  const double size = static_cast<double>(bytes);
  const double moving_ns = size / cost.bytes_per_ns;
  const double took_ns = static_cast<double>(elapsed.count()) - piece_ns;
  ++samples;
  if (moving_ns <= cost.latency_ns) {
    latency_ns = blend(latency_ns, std::max(took_ns - moving_ns, 1.0));
  } else {
    // A transfer faster than the latency alone says that the latency is wrong, not that bandwidth is without end.
    bytes_per_ns = blend(bytes_per_ns, size / std::max(took_ns - cost.latency_ns, moving_ns / 4));
  }
}

Cost Cost::of(const backend::Traits& traits, const Health& health) {
  Cost cost;
  cost.latency_ns = health.latency_ns > 0 ? health.latency_ns : std::max(traits.latency_ns, 0.0);
  cost.bytes_per_ns = health.bytes_per_ns > 0 ? health.bytes_per_ns : traits.bytes_per_ns;
  if (!(cost.bytes_per_ns > 0)) cost.bytes_per_ns = 1;
  cost.piece_ns = std::max(traits.piece_ns, 0.0);
  return cost;
}

double Cost::predict_ns(std::uint64_t bytes, std::uint64_t pieces) const {
  const double more_pieces = static_cast<double>(std::max<std::uint64_t>(pieces, 1) - 1);
  return latency_ns + more_pieces * piece_ns + static_cast<double>(bytes) / bytes_per_ns;
}

}  // namespace hawser::plan
