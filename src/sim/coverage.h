#pragma once

// Coverage: which faults fell into which phases, in both modes.
//
// Thread rule: a value.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "backend/sim/factory.h"
#include "sim/coverage_grid.h"

namespace hawser::simulation {

enum class Fault : std::uint8_t {
  kLoss,       ///< Segments must be sent again for a while.
  kDelay,      ///< Jitter of many latencies: streams overtake each other.
  kPartition,  ///< Both ways, for a time.
  kOneWay,     ///< One way only.
  kReset,      ///< Of one connection, or of the mapped memory of two agents.
  kHalfClose,  ///< Of one connection, one way.
  kCrash,      ///< The process ends; its kernel tells.
  kPowerLoss,  ///< Nobody tells.
  kRestart,    ///< A crash, and at once another incarnation of the same name.
  kSlow,       ///< Turns seldom.
  kStop,       ///< SIGSTOP, and on again later.
  kFullQueue,  ///< Windows, rings and queues hardly hold anything.
  kDevice,     ///< The device of the better backend goes away and comes back, perhaps again and again.
};
inline constexpr std::size_t kFaults = 13;

enum class Step : std::uint8_t {
  kConnect,       ///< A connect is on its way.
  kHello,         ///< Connected, not yet proven to each other.
  kPrepare,       ///< Submitted, nothing has landed.
  kInFlight,      ///< Some of the bytes have landed.
  kAck,           ///< All have; the initiator does not know.
  kNotification,  ///< The bytes have landed, the notification (or signal) has not; or one without bytes is on its way.
  kClose,         ///< A region or an agent is closing.
  kAsk,           ///< An atomic operation was asked and is not done.
  kAnswer,        ///< It is done, and who asked does not know.
};
inline constexpr std::size_t kSteps = 9;

std::string_view to_string(Fault fault);
std::string_view to_string(Step step);

/// Whether there is such a thing: mapped memory has no links to cut, and who copies needs no acknowledgement.
bool possible(sim::Mode mode, Fault fault, Step step);

class Coverage {
 public:
  void count(sim::Mode mode, Fault fault, Step step) { grids_[index(mode)].count(at(fault), at(step)); }
  std::uint64_t count_of(sim::Mode mode, Fault fault, Step step) const {
    return grids_[index(mode)].count_of(at(fault), at(step));
  }
  void add(const Coverage& other);
  /// Cells of `mode` that are possible and empty.
  std::size_t empty_cells(sim::Mode mode) const;
  /// A table for people; "-" where there is no such thing.
  std::string table(sim::Mode mode) const;

 private:
  static std::size_t index(sim::Mode mode) { return mode == sim::Mode::kStream ? 0 : 1; }
  template <typename T>
  static std::size_t at(T value) {
    return static_cast<std::size_t>(value);
  }
  std::array<CoverageGrid, 2> grids_{CoverageGrid(kFaults, kSteps), CoverageGrid(kFaults, kSteps)};
};

}  // namespace hawser::simulation
