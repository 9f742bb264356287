#pragma once

// Gid: one address of an RDMA port, and the table that tells which of them is best for reaching a peer, and why.
//
// A RoCE port has one entry for each pair of (address of its interfaces, RoCE version), at indexes that differ between
// hosts, so no fixed index is ever right. An InfiniBand port has its subnet prefix with its number at index 0.
//
// Thread rule: values and pure functions.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hawser/status.h>

namespace hawser::backend::verbs {

using GidBytes = std::array<std::uint8_t, 16>;

enum class GidType : std::uint8_t { kUnknown, kInfiniBand, kRoceV1, kRoceV2 };
std::string to_string(GidType type);

struct Gid {
  /// The largest that an address handle can name; tables may be longer.
  static constexpr std::uint32_t kIndexMax = 255;

  std::uint32_t index = 0;  ///< In the port's table: what an address handle takes.
  GidBytes bytes = {};
  GidType type = GidType::kUnknown;
  std::string netdev;  ///< The interface whose address it is; empty when the system does not tell.
  /// How many bits of `bytes` name the subnet; 0: unknown, then /24 of an IPv4 address and /64 of an IPv6 one.
  std::uint8_t prefix_bits = 0;

  bool ipv4_mapped() const;
  /// Reaches no further than the link: fe80::/10, or 169.254.0.0/16 as an IPv4 address.
  bool link_local() const;
  bool loopback() const;
  /// "10.77.0.1" or "fe80::1".
  std::string text() const;
};

/// Eight groups of hexadecimal digits, as sysfs writes a GID. Nothing for anything else.
std::optional<GidBytes> parse_gid(std::string_view text);
bool is_zero(const GidBytes& bytes);
/// Both of one family, and their subnets are equal by the longer prefix of the two. Link-local ones never are: which
/// link they mean cannot be told.
bool same_subnet(const Gid& a, const Gid& b);

struct GidScore {
  Gid gid;
  int score = 0;
  bool usable = true;
  std::string reason;  ///< "RoCE v2 +1000, routable +200, ...", for people.
};

/// The table, best first; ties by index. `own_netdev`: the port's own interface, empty when unknown. `peer`: the peer's
/// GIDs, where they are known: then one of the peer's family, type and subnet is preferred.
std::vector<GidScore> score_gids(std::span<const Gid> gids, const std::string& own_netdev,
                                 std::span<const Gid> peer = {});

/// Those that may lead to a peer with these, best first: of a version that the peer has, where there is one. Empty only
/// where `gids` is.
std::vector<Gid> gids_towards(std::span<const Gid> gids, const std::string& own_netdev, std::span<const Gid> peer);

}  // namespace hawser::backend::verbs
