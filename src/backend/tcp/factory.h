#pragma once

// The tcp backend: works everywhere. The remote-memory protocol of backend/stream over sockets.
//
// Parameters: listen (addresses, networks, interfaces, by commas: backend/places/interfaces.h; `auto`: all addresses,
// if bytes for other hosts can be covered by TLS; default 127.0.0.1 and ::1), port (0: any), connections, small,
// sndbuf, rcvbuf, notsent, congestion. NOTES.md tells how the defaults were found.
//
// Thread rule: pure functions.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "backend/backend.h"
#include "backend/fd_ledger.h"
#include "backend/stream/stream.h"

namespace hawser::backend {

Factory tcp_factory();

/// Sockets for another backend's own streams: where it listens, how it is reached, and whom it may reach.
struct TcpDoor {
  std::unique_ptr<stream::Network> network;
  std::shared_ptr<FdLedger> ledger;  ///< Of all its descriptors, for disown_after_fork.
  std::string address;               ///< For the card.
  std::string readable_address;
  std::string first_place;  ///< Of the address; as a hello tells it.
  std::vector<std::string> warnings;
  std::string chosen;  ///< For the log: where it listens, what peers are told, what was left out.
  std::function<Status(std::string_view peer_address)> reachable;  ///< As Backend::reachable.
  /// Whether the address tells that it is of this host's network stack.
  std::function<bool(std::string_view peer_address)> is_same_host;
};

/// For a backend whose own bytes nothing covers: it leaves the host at the levels `none` and `authenticate` only.
/// `params`: those of the backend tcp that tell where to listen. Errors: as of opening that backend.
Result<TcpDoor> open_tcp_door(const Params& params, const Context& context);

/// "host:port", as a user typed it, as an address that Port::open_path takes: all that the name stands for, in numbers.
/// Blocks for at most `patience` when a name server has to be asked: not for turns. Errors: kInvalid (not host:port),
/// kNotFound (no such host), kTimedOut.
Result<std::string> resolve_tcp_address(std::string_view typed, Duration patience);

}  // namespace hawser::backend
