#pragma once

// PacketNet: a simulated network of datagrams in virtual time. Each host hangs on a cable with a rate, a queue that is
// bounded, a latency and a largest datagram, each way. On the way datagrams may be lost, come twice, late, changed or
// cut. A cable may be dead for a while, a host may get another address, and a NAT another port.
//
// A socket is an address with a port. Ports of hosts behind a NAT are below kNatStep; outside they look shifted.
//
// Thread rule: one thread. Lifetime: outlives the hosts on it; the world outlives it. Memory: what is on its way.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "backend/quic/route.h"
#include "backend/sim/factory.h"

namespace hawser::quicsim {

using backend::quic::Route;

/// Chances of a datagram, and what its way takes.
struct Weather {
  double lost = 0, doubled = 0, changed = 0, cut = 0, late = 0;
  Duration latency = std::chrono::microseconds(50);
  Duration jitter = Duration::zero();                ///< More than that for each datagram, so they may overtake.
  Duration lateness = std::chrono::milliseconds(2);  ///< What those that are late take more, at most.
  double bytes_per_ns = 0;                           ///< 0: no bound.
  std::size_t queue_bytes = 256 * 1024;              ///< What waits for its turn; more is lost.
  std::size_t datagram_max = 65'507;                 ///< Longer ones are lost.
};

struct Datagram {
  Route route;  ///< As its receiver sees it.
  std::vector<std::byte> bytes;
  bool is_whole = true;  ///< As it was sent, and it comes once.
};

class PacketNet {
 public:
  static constexpr std::uint16_t kNatStep = 1000;

  /// The two ways of a cable: away from its host, and towards it.
  enum Way : std::size_t { kUp = 0, kDown = 1 };
  struct Cable {
    std::array<Weather, 2> weather;
    std::array<Instant, 2> dead_until = {Instant::min(), Instant::min()};
    std::array<Instant, 2> free_at = {Instant::min(), Instant::min()};
    std::uint16_t shift = 0;  ///< What the NAT adds to ports.
  };
  using Take = std::function<void(Datagram datagram)>;

  explicit PacketNet(sim::World& world) : world_(world), rng_(world.rng().fork()) {}
  PacketNet(const PacketNet&) = delete;
  PacketNet& operator=(const PacketNet&) = delete;

  /// A host at that address, whose port does not count. Its number.
  std::size_t add(const base::SocketAddress& address, const Weather& weather, Take take);
  std::size_t add(const base::SocketAddress& address, const std::array<Weather, 2>& weather, Take take);
  Cable& cable(std::size_t host) { return hosts_[host].cable; }
  /// Datagrams to the one before get lost, those on their way, too.
  void move(std::size_t host, const base::SocketAddress& address) { hosts_[host].address = address; }
  const base::SocketAddress& address(std::size_t host) const { return hosts_[host].address; }
  void shift(std::size_t host, std::uint16_t by) { hosts_[host].cable.shift = by; }
  /// Its datagrams get lost from now on, and those to it.
  void unplug(std::size_t host) { hosts_[host].is_gone = true; }
  /// From then on nothing is lost, doubled, changed, cut or late.
  void calm();
  /// Somebody who copied a datagram sends it again, from elsewhere.
  void replay(const base::SocketAddress& from, const base::SocketAddress& to, std::span<const std::byte> bytes);

  /// As `route`'s local end says: from a host's address of now, or it is lost.
  void send(std::size_t host, const Route& route, std::span<const std::byte> bytes);

  /// Called for each datagram that is lost or changed on its way: from where to where, as they are inside.
  std::function<void(std::size_t host, const Route& route)> on_lost;
  /// Sees each datagram that is sent.
  std::function<void(std::size_t host, const Route& route, std::span<const std::byte> bytes)> on_sent;

 private:
  struct Host {
    base::SocketAddress address;
    Cable cable;
    Take take;
    bool is_gone = false;
  };
  static constexpr std::size_t kNobody = SIZE_MAX;

  bool happens(double chance) { return chance > 0 && rng_.chance(chance); }
  std::size_t host_at(const base::SocketAddress& address) const;
  /// When it is through that cable; nothing: it is lost there.
  bool pass(Cable& cable, Way way, std::size_t bytes, Instant* at);
  void spoil(const Weather& weather, Datagram& datagram);
  void arrive(std::size_t to, Datagram datagram);

  sim::World& world_;
  base::Rng rng_;
  std::vector<Host> hosts_;
};

}  // namespace hawser::quicsim
