#include "backend/verbs/devices/gid.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace hawser::backend::verbs {
namespace {

// What a property is worth. A larger one outweighs the sum of those below it that may stand against it: version before
// what the peer has, the peer before reach, reach before family, family before interface.
constexpr int kVersion2 = 4000;
constexpr int kPeerFamily = 1000;
constexpr int kPeerSubnet = 500;
constexpr int kRoutable = 200;
constexpr int kIpv4 = 100;
constexpr int kOwnNetdev = 50;
// The two versions of RoCE do not understand each other.
constexpr int kPeerOtherType = -8000;

constexpr std::uint8_t kIpv4Prefix = 24;
constexpr std::uint8_t kIpv6Prefix = 64;

class Tally {
 public:
  void add(int worth, std::string_view what) {
    score_ += worth;
    reason_ += fmt::format("{}{} {:+}", reason_.empty() ? "" : ", ", what, worth);
  }
  void note(std::string_view what) { reason_ += fmt::format("{}{}", reason_.empty() ? "" : ", ", what); }
  int score() const { return score_; }
  std::string take_reason() { return std::move(reason_); }

 private:
  int score_ = 0;
  std::string reason_;
};

bool any_of(std::span<const Gid> gids, auto&& property) {
  return std::find_if(gids.begin(), gids.end(), property) != gids.end();
}

void weigh_against_peer(const Gid& gid, std::span<const Gid> peer, Tally& tally) {
  if (peer.empty()) return;
  const auto any_alike = [&](auto&& property) {  // Of its version: no other answers it.
    return any_of(peer, [&](const Gid& other) { return other.type == gid.type && property(other); });
  };
  if (!any_alike([](const Gid&) { return true; })) {
    tally.add(kPeerOtherType, fmt::format("the peer has no {}", to_string(gid.type)));
  }
  if (any_alike([&](const Gid& other) { return other.ipv4_mapped() == gid.ipv4_mapped(); })) {
    tally.add(kPeerFamily, "family of the peer");
  }
  if (any_alike([&](const Gid& other) { return same_subnet(gid, other); })) {
    tally.add(kPeerSubnet, "subnet of the peer");
  }
}

GidScore score_of(const Gid& gid, const std::string& own_netdev, std::span<const Gid> peer) {
  Tally tally;
  const std::string type = to_string(gid.type);
  if (gid.type == GidType::kRoceV2) {
    tally.add(kVersion2, type);
  } else {
    tally.note(type);
  }
  weigh_against_peer(gid, peer, tally);
  if (gid.type != GidType::kInfiniBand) {
    if (gid.link_local()) {
      tally.note("link-local");
    } else {
      tally.add(kRoutable, "routable");
    }
    if (gid.ipv4_mapped()) tally.add(kIpv4, "IPv4");
    if (!own_netdev.empty() && gid.netdev == own_netdev) tally.add(kOwnNetdev, "own interface");
  }
  GidScore score{gid, tally.score(), true, {}};
  if (gid.loopback()) {
    score.usable = false;
    tally.note("loopback: of no use");
  }
  if (gid.index > Gid::kIndexMax) {
    score.usable = false;
    tally.note("no queue pair can name an index above 255");
  }
  score.reason = tally.take_reason();
  return score;
}

bool equal_bits(const GidBytes& a, const GidBytes& b, unsigned from, unsigned count) {
  for (unsigned bit = from; bit < from + count; ++bit) {
    const unsigned mask = 0x80u >> (bit % 8);
    if ((a[bit / 8] & mask) != (b[bit / 8] & mask)) return false;
  }
  return true;
}

}  // namespace

std::string to_string(GidType type) {
  switch (type) {
    case GidType::kUnknown:
      return "unknown type";
    case GidType::kInfiniBand:
      return "InfiniBand";
    case GidType::kRoceV1:
      return "RoCE v1";
    case GidType::kRoceV2:
      return "RoCE v2";
  }
  return "unknown type";
}

bool Gid::ipv4_mapped() const {
  return std::all_of(bytes.begin(), bytes.begin() + 10, [](std::uint8_t byte) { return byte == 0; }) &&
         bytes[10] == 0xff && bytes[11] == 0xff;
}

bool Gid::link_local() const {
  if (ipv4_mapped()) return bytes[12] == 169 && bytes[13] == 254;
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

bool Gid::loopback() const {
  if (ipv4_mapped()) return bytes[12] == 127;
  return std::all_of(bytes.begin(), bytes.end() - 1, [](std::uint8_t byte) { return byte == 0; }) && bytes[15] <= 1;
}

std::string Gid::text() const {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  const bool v4 = ipv4_mapped();
  inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? &bytes[12] : bytes.data(), text.data(), text.size());
  return text.data();
}

std::optional<GidBytes> parse_gid(std::string_view text) {
  constexpr std::size_t kGroups = 8;
  constexpr std::size_t kGroupSize = 5;  // four digits and a colon
  if (text.size() != kGroups * kGroupSize - 1) return std::nullopt;
  GidBytes bytes = {};
  for (std::size_t group = 0; group < kGroups; ++group) {
    const std::string_view digits = text.substr(group * kGroupSize, 4);
    std::uint16_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    if (group + 1 < kGroups && text[group * kGroupSize + 4] != ':') return std::nullopt;
    bytes[group * 2] = static_cast<std::uint8_t>(value >> 8);
    bytes[group * 2 + 1] = static_cast<std::uint8_t>(value & 0xff);
  }
  return bytes;
}

bool is_zero(const GidBytes& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

bool same_subnet(const Gid& a, const Gid& b) {
  if (a.link_local() || b.link_local() || a.ipv4_mapped() != b.ipv4_mapped()) return false;
  const unsigned longer = std::max(a.prefix_bits, b.prefix_bits);
  if (a.ipv4_mapped()) return equal_bits(a.bytes, b.bytes, 96, std::min(32u, longer == 0 ? kIpv4Prefix : longer));
  return equal_bits(a.bytes, b.bytes, 0, std::min(128u, longer == 0 ? kIpv6Prefix : longer));
}

std::vector<Gid> gids_towards(std::span<const Gid> gids, const std::string& own_netdev, std::span<const Gid> peer) {
  std::vector<Gid> ways;
  for (GidScore& score : score_gids(gids, own_netdev, peer)) {
    const bool fits = score.usable && any_of(peer, [&](const Gid& other) { return other.type == score.gid.type; });
    if (fits || ways.empty()) ways.push_back(std::move(score.gid));
  }
  return ways;
}

std::vector<GidScore> score_gids(std::span<const Gid> gids, const std::string& own_netdev, std::span<const Gid> peer) {
  std::vector<GidScore> table;
  table.reserve(gids.size());
  for (const Gid& gid : gids) table.push_back(score_of(gid, own_netdev, peer));
  std::stable_sort(table.begin(), table.end(), [](const GidScore& a, const GidScore& b) {
    if (a.usable != b.usable) return a.usable;
    if (a.score != b.score) return a.score > b.score;
    return a.gid.index < b.gid.index;
  });
  return table;
}

}  // namespace hawser::backend::verbs
