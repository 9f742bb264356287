#pragma once

// Settings: what a seed decides of a run before it begins.

#include <cstddef>
#include <cstdint>
#include <string>

#include <hawser/topology.h>

#include "backend/sim/factory.h"
#include "base/rng.h"

namespace hawser::worldsim {

struct Settings {
  std::uint64_t seed = 1;
  sim::Mode mode = sim::Mode::kStream;
  std::size_t ranks = 3;  ///< 2 to 8; of a sparse world 4 to 12.
  Topology topology;
  std::uint64_t acts = 8;  ///< Collectives of the first world.
  Duration heartbeat = std::chrono::milliseconds(20);
  Duration peer_timeout = std::chrono::milliseconds(400);
  Duration timeout = std::chrono::seconds(5);         ///< Of operations.
  Duration pause_max = std::chrono::milliseconds(2);  ///< Between two things that a rank does.
  std::size_t at_once = 1;                            ///< Collectives of one world.
  std::size_t faults = 0;
  bool cancels = false;    ///< Ranks cancel what they began,
  bool impatient = false;  ///< or give it little time.
  bool errs = false;       ///< One rank calls something else than the others, once.
  bool majority = false;   ///< Only more than half of the ranks go on.
  bool dissents = false;   ///< Ranks vote against going on though all is well.
  bool parts = false;      ///< The only fault: two ranks that live lose each other for good (in sparse worlds
                           ///< neighbours, and half of them for longer than peer_timeout).
  bool groups = false;
  bool automatic = false;  ///< Worlds recover by themselves.
  std::size_t hosts = 1;   ///< So many hosts have the ranks, in turn or
  bool in_blocks = false;  ///< in blocks.
  bool reads = false;      ///< Receivers read large messages out of the sender's memory.
  bool maps = false;       ///< Ranks read each other's buffers in collectives,
  bool boards = false;     ///< or write small ones on boards.
  bool guests = false;     ///< Ranks live in agents that programs opened, and two worlds share these agents.
  std::size_t piece = 0;   ///< Bytes of a piece, of what goes over boards in pieces. 0: as it is.
};

inline bool is_sparse(const Settings& settings) { return settings.topology.kind != Topology::Kind::kFull; }
Settings draw_settings(base::Rng& rng, std::uint64_t seed, sim::Mode mode);
void draw_network(base::Rng& rng, const Settings& settings, sim::Universe& universe);
std::string describe(const Settings& settings);

}  // namespace hawser::worldsim
