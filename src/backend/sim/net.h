#pragma once

// Net: the simulated network as one thing: who listens where, which connections stand, and the faults done to them.
// Each host's part of it is a stream::Network, so the streams' port runs here as it runs over sockets.
//
// A host's *kernel* is apart from its process: a stopped process still has its connections accepted and its windows
// filled; a crashed one has them reset; after a loss of power nothing answers until the machine is on again, and what
// it had is reset at the next byte.
//
// Thread rule: the world's. Lifetime: the world's; Networks and streams hold what they need of it.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

#include "backend/sim/fabric.h"
#include "backend/sim/host.h"
#include "backend/sim/pipe.h"
#include "backend/stream/stream.h"

namespace hawser::sim {

class Connection;
class HostNetwork;

struct NetOptions {
  PipeOptions pipe;
  Duration connect_timeout = std::chrono::seconds(1);  ///< Until a connect that nobody answers gives up.
  bool streams_are_apart = false;                      ///< As QUIC's: links have streams of their own.
  bool keep_arrived_on_reset = true;                   ///< Whether bytes received before a reset can still be read.
};

/// Connections that may wait to be accepted by one listener, as a kernel's backlog.
inline constexpr std::size_t kBacklogMax = 128;

class Net {
 public:
  explicit Net(World& world) : world_(world), fabric_(world) {}

  World& world() { return world_; }
  Fabric& fabric() { return fabric_; }
  NetOptions& options() { return options_; }

  /// Starts listening on `address` for `host`. kInvalid: somebody does already.
  Result<std::unique_ptr<backend::stream::Network>> open(std::shared_ptr<Host> host, std::string address);

  /// Connections between two hosts in the order in which they were made.
  std::vector<std::shared_ptr<Connection>> between(std::uint32_t a, std::uint32_t b);

  // Faults.
  /// Both ends see it after the link's latency.
  void reset(const std::shared_ptr<Connection>& connection);
  /// The end at host `from` sees it first; the other one later, behind all that was sent (see Connection::part).
  void reset_late(const std::shared_ptr<Connection>& connection, std::uint32_t from, Duration kept, Duration pause);
  /// The way that starts at host `from` ends in order; the other goes on.
  void half_close(const std::shared_ptr<Connection>& connection, std::uint32_t from);
  /// Another window from now on, for both ways; small: full queues.
  void set_capacity(const std::shared_ptr<Connection>& connection, std::size_t bytes);
  /// The process ended; its kernel resets what it had.
  void crash(std::uint32_t host);
  void lose_power(std::uint32_t host);
  void power_on(std::uint32_t host);
  /// The process of that host is another user's: whoever asks who is at the far end hears so. All others are of one.
  void set_other_user(std::uint32_t host) { other_users_.insert(host); }
  bool is_other_user(std::uint32_t host) const { return other_users_.contains(host); }

 private:
  friend class Connection;
  friend class HostNetwork;
  void forget(std::uint32_t host);  ///< Its listeners are gone.
  std::vector<std::shared_ptr<Connection>> of(std::uint32_t host);
  bool is_off(std::uint32_t host) const { return off_.contains(host); }

  World& world_;
  Fabric fabric_;
  NetOptions options_;
  std::map<std::string, HostNetwork*, std::less<>> listeners_;
  std::map<std::string, std::uint32_t, std::less<>> places_;  ///< Which host an address leads to, listening or not.
  std::set<std::uint32_t> other_users_;
  std::set<std::uint32_t> off_;  ///< Machines without power.
  std::vector<std::weak_ptr<Connection>> connections_;
};

}  // namespace hawser::sim
