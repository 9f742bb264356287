#pragma once

// Which ports of two hosts are joined to rails, by the policy that the user chose.
//
// Thread rule: values and pure functions. Both hosts find the same rails, whichever of them asks, if each knows the
// other's ports.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

#include "backend/verbs/devices/device.h"
#include "backend/verbs/devices/select.h"

namespace hawser::backend::verbs {

struct Pairing {
  enum class Policy : std::uint8_t {
    kAny,        ///< Same names first, then the best that is left.
    kMatchName,  ///< Only devices of the same name.
    kGroups,     ///< As kAny, but within a group only; a device in no group is not used.
  };
  Policy policy = Policy::kAny;
  std::vector<std::vector<std::string>> groups;  ///< Of device names, disjoint.
};
/// "any" (also empty), "match_name", "groups:mlx5_0,mlx5_1|mlx5_2". Errors: kInvalid with what is wrong.
Result<Pairing> parse_pairing(std::string_view text);

/// What a host tells another of a port.
struct RailPort {
  std::string device;
  std::uint8_t port = 1;
  Transport transport = Transport::kUnknown;
  LinkLayer link_layer = LinkLayer::kUnknown;
  std::uint64_t mbit_per_s = 0;
  Gid gid;                     ///< The one it would use.
  std::vector<Gid> gids = {};  ///< All that it could use; empty: that one.

  std::span<const Gid> all() const { return gids.empty() ? std::span(&gid, 1) : std::span(gids); }
};
/// Of a chosen port with its GID.
RailPort rail_port(const LocalPort& port, const Gid& gid);

struct Rail {
  std::uint32_t local = 0;   ///< Index in the list of local ports.
  std::uint32_t remote = 0;  ///< Index in the list of remote ports.
  friend bool operator==(const Rail&, const Rail&) = default;
};

/// The rails, best first; both lists are ordered best first, as choose_ports gives them. Each port is in one rail, but
/// for ports that are left over: they join a port of the other side whose speed is not used up. Empty when no two ports
/// fit: why_no_rails says why.
std::vector<Rail> choose_rails(std::span<const RailPort> local, std::span<const RailPort> remote,
                               const Pairing& pairing);
/// kNotFound, with both sides' ports and what keeps them apart.
Status why_no_rails(std::span<const RailPort> local, std::span<const RailPort> remote, const Pairing& pairing);

}  // namespace hawser::backend::verbs
