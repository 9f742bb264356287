#pragma once

// Coverage: which faults met what the ranks were about. A run of many seeds is judged by its emptiest cell.
//
// Thread rule: a value.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "backend/sim/factory.h"
#include "sim/coverage_grid.h"

namespace hawser::worldsim {

enum class Fault : std::uint8_t {
  kCrash,      ///< The process ends; its kernel tells.
  kPowerLoss,  ///< Nobody tells.
  kStop,       ///< SIGSTOP, and on again later.
  kSlow,       ///< Turns seldom.
  kCut,        ///< Two ranks do not hear each other for a time.
  kReset,      ///< Of one connection.
  kHalfClose,  ///< Of one connection, one way.
  kDelay,      ///< Jitter of many latencies.
  kLoss,       ///< Segments must be sent again for a while.
  kFull,       ///< Windows and rings hardly hold anything for a while.
};
inline constexpr std::size_t kFaults = 10;

/// What a rank waits for when the fault strikes. kDecide: two ranks know what was agreed, and a third one does not yet.
/// kRelay: a letter or a call of two others goes by way of the rank; only in sparse worlds.
enum class Moment : std::uint8_t { kCollective, kLetter, kCall, kAgree, kShrink, kDecide, kLeave, kRelay };
inline constexpr std::size_t kMoments = 8;

std::string_view to_string(Fault fault);
std::string_view to_string(Moment moment);
/// Mapped memory has no connections and no power of its own.
bool possible(sim::Mode mode, Fault fault);

class Coverage {
 public:
  void count(Fault fault, Moment moment) {
    grid_.count(static_cast<std::size_t>(fault), static_cast<std::size_t>(moment));
  }
  std::uint64_t count_of(Fault fault, Moment moment) const {
    return grid_.count_of(static_cast<std::size_t>(fault), static_cast<std::size_t>(moment));
  }
  void add(const Coverage& other) { grid_.add(other.grid_); }
  std::size_t empty_cells(sim::Mode mode) const;
  /// For people; "-" where there is no such thing.
  std::string table(sim::Mode mode) const;

 private:
  simulation::CoverageGrid grid_{kFaults, kMoments};
};

}  // namespace hawser::worldsim
