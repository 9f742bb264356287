#pragma once

// The port of every stream backend: sessions, hellos and remote memory over a Network. tcp gives it sockets, sim a
// simulated network; both run this same code.
//
// Thread rule: a Port is confined to its lane. Lifetime: identity, regions and log of the Context outlive it.

#include <memory>
#include <string>

#include "backend/backend.h"
#include "backend/stream/stream.h"

namespace hawser::backend::stream {

struct PortOptions {
  std::string_view backend;  ///< Name, for errors and counters; must outlive the port.
  /// Streams per path: one for small operations, the rest for bulk. 1..kStreamsMax.
  unsigned connections = 2;
  std::uint64_t small_max = 16 * 1024;  ///< Chunks up to this size go with the small operations.
  /// In turns that do nothing the network is asked each so many, too, not by the clock alone. 0: it carries no more
  /// than the control of other paths, and nobody waits for that by the microsecond.
  unsigned look_turns = 64;
  /// One place where this agent listens, for the peer to ask there whether it still does; may be empty.
  std::string listen = {};
};

/// `context` is copied; `network` may be listening already.
std::unique_ptr<Port> make_port(const Context& context, const PortOptions& options, std::unique_ptr<Network> network);

/// What every stream backend is able to do; each puts in its name and estimates.
Traits stream_traits(std::string_view name);

}  // namespace hawser::backend::stream
