#pragma once

// Coverage: which faults met what connections were about. A run of many seeds is judged by its emptiest cell.
//
// Thread rule: a value.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "backend/sim/factory.h"
#include "sim/coverage_grid.h"

namespace hawser::quicsim {

enum class Fault : std::uint8_t {
  kLoss,       ///< Many datagrams are lost for a while,
  kCut,        ///< or all of them,
  kHalfCut,    ///< or those of one direction.
  kDelay,      ///< All take longer from now on.
  kShrink,     ///< Only small datagrams get through for a while.
  kRebind,     ///< A NAT takes another port.
  kMove,       ///< The opener's host gets another address.
  kFull,       ///< A socket takes nothing for a while.
  kStop,       ///< A process stops for a while.
  kPowerLoss,  ///< A host is gone, and nobody tells.
  kForget,     ///< A host takes the other one for gone.
  kClose,      ///< The user of one end closes the connection, in order or not.
  kKeys,       ///< One end asks for new keys.
  kReplay,     ///< Somebody sends a copy of a datagram first, from elsewhere.
};
inline constexpr std::size_t kFaults = 14;

/// What a connection is about when the fault strikes.
enum class Moment : std::uint8_t {
  kShaking,
  kFlowing,  ///< Bytes are under way.
  kHeldUp,   ///< Nobody reads what a stream has brought.
  kParting,  ///< One end of a stream has gone, the other one has not.
  kQuiet,    ///< None of all that.
};
inline constexpr std::size_t kMoments = 5;

std::string_view to_string(Fault fault);
std::string_view to_string(Moment moment);
/// There are no keys to exchange in the handshake.
bool possible(Fault fault, Moment moment);

class Coverage {
 public:
  void count(Fault fault, Moment moment) {
    grid_.count(static_cast<std::size_t>(fault), static_cast<std::size_t>(moment));
  }
  std::uint64_t count_of(Fault fault, Moment moment) const {
    return grid_.count_of(static_cast<std::size_t>(fault), static_cast<std::size_t>(moment));
  }
  void add(const Coverage& other) { grid_.add(other.grid_); }
  std::size_t empty_cells(sim::Mode mode) const;  ///< All modes are one here.
  /// For people; "-" where there is no such thing.
  std::string table(sim::Mode mode) const;

 private:
  simulation::CoverageGrid grid_{kFaults, kMoments};
};

}  // namespace hawser::quicsim
