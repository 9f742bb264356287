#include "quicsim/packet_net.h"

#include <algorithm>
#include <utility>

namespace hawser::quicsim {
namespace {

base::SocketAddress with_port(base::SocketAddress address, std::uint16_t port) {
  address.set_port(port);
  return address;
}

bool is_same_host(const base::SocketAddress& a, const base::SocketAddress& b) {
  return backend::quic::is_same_address(with_port(a, 0), with_port(b, 0));
}

}  // namespace

std::size_t PacketNet::add(const base::SocketAddress& address, const Weather& weather, Take take) {
  return add(address, std::array{weather, weather}, std::move(take));
}

std::size_t PacketNet::add(const base::SocketAddress& address, const std::array<Weather, 2>& weather, Take take) {
  hosts_.push_back({.address = address, .cable = {.weather = weather}, .take = std::move(take)});
  return hosts_.size() - 1;
}

void PacketNet::calm() {
  for (Host& host : hosts_) {
    for (Weather& weather : host.cable.weather) {
      weather.lost = weather.doubled = weather.changed = weather.cut = weather.late = 0;
    }
    host.cable.dead_until = {Instant::min(), Instant::min()};
  }
}

std::size_t PacketNet::host_at(const base::SocketAddress& address) const {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (is_same_host(hosts_[i].address, address)) return i;
  }
  return kNobody;
}

bool PacketNet::pass(Cable& cable, Way way, std::size_t bytes, Instant* at) {
  const Weather& weather = cable.weather[way];
  if (world_.now() < cable.dead_until[way] || bytes > weather.datagram_max || happens(weather.lost)) return false;
  if (weather.bytes_per_ns > 0) {
    Instant& free_at = cable.free_at[way];
    const Duration waits = std::max(free_at - world_.now(), Duration::zero());
    const double queued = free_at > world_.now() ? static_cast<double>(waits.count()) * weather.bytes_per_ns : 0;
    if (queued + static_cast<double>(bytes) > static_cast<double>(weather.queue_bytes)) return false;
    const Duration takes(static_cast<std::int64_t>(static_cast<double>(bytes) / weather.bytes_per_ns));
    free_at = std::max(free_at, world_.now()) + takes;
    *at = *at + (free_at - world_.now());
  }
  *at = *at + weather.latency;
  if (weather.jitter > Duration::zero()) *at = *at + Duration(rng_.range(0, weather.jitter.count()));
  if (happens(weather.late)) *at = *at + Duration(rng_.range(0, weather.lateness.count()));
  return true;
}

void PacketNet::spoil(const Weather& weather, Datagram& datagram) {
  if (happens(weather.changed)) {
    datagram.bytes[rng_.below(datagram.bytes.size())] ^= static_cast<std::byte>(1u << rng_.below(8));
    datagram.is_whole = false;
  }
  if (happens(weather.cut)) {
    datagram.bytes.resize(1 + rng_.below(datagram.bytes.size()));
    datagram.is_whole = false;
  }
}

void PacketNet::send(std::size_t host, const Route& route, std::span<const std::byte> bytes) {
  if (on_sent) on_sent(host, route, bytes);
  const auto lose = [&] {
    if (on_lost) on_lost(host, route);
  };
  Host& from = hosts_[host];
  const std::size_t to = host_at(route.remote);
  if (from.is_gone || to == kNobody || !is_same_host(route.local, from.address)) return lose();
  const int times =
      happens(from.cable.weather[kUp].doubled) || happens(hosts_[to].cable.weather[kDown].doubled) ? 2 : 1;
  for (int i = 0; i < times; ++i) {
    Instant at = world_.now();
    if (!pass(from.cable, kUp, bytes.size(), &at) || !pass(hosts_[to].cable, kDown, bytes.size(), &at)) {
      lose();
      continue;
    }
    Datagram datagram = {
        .route = {.local = route.remote,
                  .remote = with_port(route.local, static_cast<std::uint16_t>(route.local.port() + from.cable.shift))},
        .bytes = {bytes.begin(), bytes.end()},
        .is_whole = times == 1};  // Nobody knows which of two comes first.
    spoil(from.cable.weather[kUp], datagram);
    spoil(hosts_[to].cable.weather[kDown], datagram);
    if (times == 1 && !datagram.is_whole) lose();
    world_.at(at, [this, to, datagram = std::move(datagram)]() mutable { arrive(to, std::move(datagram)); });
  }
}

void PacketNet::replay(const base::SocketAddress& from, const base::SocketAddress& to,
                       std::span<const std::byte> bytes) {
  const std::size_t host = host_at(to);
  if (host == kNobody) return;
  arrive(host, {.route = {.local = to, .remote = from}, .bytes = {bytes.begin(), bytes.end()}, .is_whole = false});
}

/// The host may have another address by now, and its NAT another port.
void PacketNet::arrive(std::size_t to, Datagram datagram) {
  Host& host = hosts_[to];
  const std::uint16_t port = datagram.route.local.port();
  const bool is_its_port = port / kNatStep * kNatStep == host.cable.shift;
  if (host.is_gone || !is_its_port || !is_same_host(host.address, datagram.route.local)) {
    if (on_lost) on_lost(to, {.local = datagram.route.remote, .remote = datagram.route.local});
    return;
  }
  datagram.route.local.set_port(static_cast<std::uint16_t>(datagram.route.local.port() - host.cable.shift));
  host.take(std::move(datagram));
}

}  // namespace hawser::quicsim
