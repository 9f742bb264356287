#pragma once

// Exact quantiles of a few samples, for reports. Long runs use base::Histogram instead.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hawser::cli {

struct Quantiles {
  std::size_t count = 0;
  std::uint64_t min = 0, p50 = 0, p99 = 0, max = 0;
};

/// Nearest rank: a quantile is one of the samples.
inline Quantiles quantiles_of(std::vector<std::uint64_t> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const auto rank = [&](std::size_t percent) {
    return samples[std::max<std::size_t>((samples.size() * percent + 99) / 100, 1) - 1];
  };
  return {samples.size(), samples.front(), rank(50), rank(99), samples.back()};
}

}  // namespace hawser::cli
