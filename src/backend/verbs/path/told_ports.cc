#include "backend/verbs/path/told_ports.h"

#include <algorithm>

namespace hawser::backend::verbs {

bool ToldPorts::take(const wire::RdmaPorts& told) {
  if (peers_.empty()) {
    peers_ = told.ports;
    return true;
  }
  const auto same = [](const wire::RdmaPort& a, const wire::RdmaPort& b) {
    return a.device == b.device && a.number == b.number;
  };
  if (std::ranges::equal(peers_, told.ports, same)) peers_ = told.ports;
  return false;
}

std::uint64_t ToldPorts::rail_speed(std::uint64_t own_mbit_per_s, std::uint32_t remote) const {
  return remote >= peers_.size() ? 0 : std::min(own_mbit_per_s, peers_[remote].mbit_per_s);
}

Result<std::vector<Rail>> ToldPorts::rails(std::vector<RailPort> ours, const std::vector<bool>& are_away,
                                           const Pairing& pairing) const {
  for (std::size_t lane = 0; lane < ours.size(); ++lane) {
    if (are_away[lane]) ours[lane].transport = Transport::kUnknown;
  }
  std::vector<RailPort> theirs;
  for (const wire::RdmaPort& port : peers_) theirs.push_back(rail_port(port));
  std::vector<Rail> rails = choose_rails(ours, theirs, pairing);
  std::erase_if(rails, [&](const Rail& rail) { return are_away[rail.local]; });
  if (rails.empty()) return why_no_rails(ours, theirs, pairing).with_scope(Scope::kPath);
  return rails;
}

std::vector<Gid> ToldPorts::peer_gids(std::uint32_t remote, bool inbound, const wire::GidBytes& chosen) const {
  if (remote >= peers_.size()) return {};
  const RailPort told = rail_port(peers_[remote]);
  const std::span<const Gid> all = told.all();
  if (!inbound) return {all.begin(), all.end()};
  const Gid its = gid_of({.bytes = chosen, .type = peers_[remote].gid_type});
  // An address may be there by both versions; it prefers the better, which is told first.
  const auto known = std::ranges::find(all, its.bytes, &Gid::bytes);
  return {known != all.end() ? *known : its};
}

std::size_t ToldPorts::ways_of_peer(std::uint32_t remote, std::span<const Gid> own) const {
  if (remote >= peers_.size()) return 0;
  return gids_towards(rail_port(peers_[remote]).all(), {}, own).size();
}

std::uint32_t ToldPorts::ways(std::uint32_t remote, std::span<const Gid> own, const std::string& own_netdev) const {
  if (remote >= peers_.size()) return 1;
  const auto ours = gids_towards(own, own_netdev, rail_port(peers_[remote]).all()).size();
  return static_cast<std::uint32_t>(ours * ways_of_peer(remote, own));
}

}  // namespace hawser::backend::verbs
