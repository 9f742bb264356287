#pragma once

// What a large world's operations take in virtual time: the schedules and the agreement of the runtime itself, for
// thousands of ranks, over VirtualLinks. Payload is a length. What no implementation could do better stands beside it.
//
// Thread rule: pure functions.

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/collective.h"

namespace hawser::worldsim {

inline constexpr std::uint32_t kScaleRanksMax = 16'384;

struct ScaleRow {
  std::string operation, algorithm;
  std::uint64_t bytes = 0;  ///< Of each rank.
  double time_ns = 0;
  double bound_ns = 0;
  std::uint64_t messages = 0;
  double ratio() const { return time_ns / bound_ns; }
};

/// A barrier, or a collective of so many bytes of float32 in each rank, by the algorithm that the runtime would choose.
/// The bound: no rank has heard of all others before ⌈log₂ p⌉ messages one after another, and each port must
/// move the bytes, of an all_reduce 2 (p−1)/p of them.
ScaleRow run_at_scale(schedule::Operation operation, std::uint32_t ranks, std::uint64_t bytes,
                      const schedule::CostModel& model);
/// A shrink after the highest rank has failed, from when all know of that until the last has decided. The bound: all
/// votes come together, and the outcome goes to all.
ScaleRow shrink_at_scale(std::uint32_t ranks, const schedule::CostModel& model);
/// What `hawser sim --what scale` shows. 2 to kScaleRanksMax ranks.
std::vector<ScaleRow> run_scale(std::uint32_t ranks);

}  // namespace hawser::worldsim
