#pragma once

// The backend `sim`: agents in one simulated universe, over streams (the remote-memory machine of tcp) or over mapped
// memory (the initiator copies). A Universe is made by a test or by the simulator and handed in by the factory; it is
// never found by name.
//
// Blocking calls of an agent (wait, close, connect) work in virtual time too, when it pauses by Host::pause.
//
// Thread rule: one thread for the universe and all agents in it. Lifetime: the universe outlives its agents.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "backend/sim/connection.h"
#include "backend/sim/fabric.h"
#include "backend/sim/host.h"
#include "backend/sim/mapped.h"
#include "backend/sim/net.h"
#include "backend/sim/world.h"

namespace hawser::sim {

enum class Mode : std::uint8_t { kStream, kMapped };

struct Universe {
  explicit Universe(WorldOptions options) : world(std::move(options)), net(world), hub(world) {}
  World world;
  Net net;
  MappedHub hub;
};

/// Where an agent sits.
struct Seat {
  std::shared_ptr<Host> host;
  Mode mode = Mode::kStream;
  std::string address;       ///< Where it listens; one per universe and process.
  unsigned connections = 2;  ///< Streams per path.
  /// Smaller than a socket's, so that small transfers have several chunks.
  std::uint64_t chunk_bytes_max = 16 * 1024;
  /// Of the backend, of the program's life; addresses that it reaches begin with it and a colon.
  std::string_view name = "sim";
  /// Paths of mapped memory end while both processes live, as those of a device do: messages must be kept.
  bool may_be_lost = false;
};

/// One agent per seat; an agent may have several seats, of different names.
backend::Factory make_factory(Universe& universe, Seat seat);

}  // namespace hawser::sim
