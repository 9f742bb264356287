#include "backend/verbs/devices/device.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

namespace hawser::backend::verbs {
namespace {

GidBytes bytes_of(const sockaddr& address) {
  GidBytes bytes = {};
  if (address.sa_family == AF_INET) {
    bytes[10] = bytes[11] = 0xff;
    std::memcpy(&bytes[12], &reinterpret_cast<const sockaddr_in&>(address).sin_addr, 4);
  } else if (address.sa_family == AF_INET6) {
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, bytes.size());
  }
  return bytes;
}

std::uint8_t bits_of(const sockaddr& mask) {
  std::size_t from = mask.sa_family == AF_INET ? 12 : 0;
  const GidBytes bytes = bytes_of(mask);
  int bits = 0;
  for (; from < bytes.size(); ++from) bits += std::popcount(bytes[from]);
  return static_cast<std::uint8_t>(bits);
}

struct Subnet {
  GidBytes address;
  std::uint8_t bits;
};

std::vector<Subnet> subnets_here() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(list, freeifaddrs);
  std::vector<Subnet> subnets;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_netmask == nullptr) continue;
    if (at->ifa_addr->sa_family != AF_INET && at->ifa_addr->sa_family != AF_INET6) continue;
    subnets.push_back({bytes_of(*at->ifa_addr), bits_of(*at->ifa_netmask)});
  }
  return subnets;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t digits_end(std::string_view text, std::size_t from) {
  while (from < text.size() && is_digit(text[from])) ++from;
  return from;
}

std::string gid_list(std::span<const Gid> gids) {
  std::string text;
  for (const Gid& gid : gids) {
    text += fmt::format("{}{} ({}, {})", text.empty() ? "" : ", ", gid.index, gid.text(), to_string(gid.type));
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::string to_string(Transport transport) {
  switch (transport) {
    case Transport::kUnknown:
      return "unknown";
    case Transport::kInfiniBand:
      return "InfiniBand verbs";
    case Transport::kIwarp:
      return "iWARP";
    case Transport::kEfa:
      return "EFA";
  }
  return "unknown";
}

std::string to_string(LinkLayer link_layer) {
  switch (link_layer) {
    case LinkLayer::kUnknown:
      return "unspecified";
    case LinkLayer::kInfiniBand:
      return "InfiniBand";
    case LinkLayer::kEthernet:
      return "Ethernet";
  }
  return "unspecified";
}

std::string to_string(PortState state) {
  switch (state) {
    case PortState::kUnknown:
      return "unknown";
    case PortState::kDown:
      return "down";
    case PortState::kInit:
      return "initializing";
    case PortState::kArmed:
      return "armed";
    case PortState::kActive:
      return "active";
    case PortState::kActiveDefer:
      return "active, deferred";
  }
  return "unknown";
}

void add_subnets(std::span<Gid> gids) {
  if (gids.empty()) return;
  const std::vector<Subnet> subnets = subnets_here();
  for (Gid& gid : gids) {
    const auto at =
        std::find_if(subnets.begin(), subnets.end(), [&](const Subnet& s) { return s.address == gid.bytes; });
    if (at != subnets.end()) gid.prefix_bits = at->bits;
  }
}

std::vector<DeviceInfo> read_devices(GidTables gids) {
  std::vector<DeviceInfo> devices = read_devices("/sys", gids);
  for (DeviceInfo& device : devices) {
    for (PortInfo& port : device.ports) add_subnets(port.gids);
  }
  return devices;
}

std::string names_of(std::span<const DeviceInfo> devices) {
  std::string text;
  for (const DeviceInfo& device : devices) text += fmt::format("{}{}", text.empty() ? "" : ", ", device.name);
  return text.empty() ? "none" : text;
}

bool name_before(std::string_view a, std::string_view b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    const std::size_t i_end = digits_end(a, i), j_end = digits_end(b, j);
    std::uint64_t left = 0, right = 0;
    std::from_chars(a.data() + i, a.data() + i_end, left);
    std::from_chars(b.data() + j, b.data() + j_end, right);
    if (left != right) return left < right;
    i = i_end, j = j_end;
  }
  if (i < a.size() || j < b.size()) return j < b.size();
  return a < b;  // "mlx5_01" and "mlx5_1"
}

std::uint64_t port_mbit_per_s(std::uint32_t active_speed, std::uint32_t active_width) {
  // By lane: SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR, XDR; each code is one bit.
  constexpr std::array<std::uint64_t, 9> kLanes = {2500, 5000, 10000, 10000, 14000, 25000, 50000, 100000, 200000};
  constexpr std::array<std::pair<std::uint32_t, std::uint64_t>, 5> kWidths = {
      {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}}};
  if (!std::has_single_bit(active_speed)) return 0;
  const auto speed = static_cast<std::size_t>(std::countr_zero(active_speed));
  if (speed >= kLanes.size()) return 0;
  for (const auto& [code, lanes] : kWidths) {
    if (code == active_width) return kLanes[speed] * lanes;
  }
  return 0;
}

std::uint32_t rdma_mtu_of(std::uint32_t ethernet_mtu) {
  // Global route 40, UDP 8, transport 12, extended transport up to 32, checksum 4: what the kernel sets aside.
  constexpr std::uint32_t kHeaders = 96;
  for (const std::uint32_t mtu : {4096u, 2048u, 1024u, 512u, 256u}) {
    if (ethernet_mtu >= mtu + kHeaders) return mtu;
  }
  return 0;
}

Result<Gid> best_gid(const PortInfo& port, std::optional<std::uint32_t> index, std::span<const Gid> peer) {
  if (index && *index > Gid::kIndexMax) {
    return Status(Code::kUnsupported,
                  fmt::format("GID {} of port {} cannot be used: a queue pair can name the first {}", *index,
                              port.number, Gid::kIndexMax + 1))
        .with_advice("leave the GID index unset, or remove addresses of the interface that nobody needs");
  }
  if (index) {
    for (const Gid& gid : port.gids) {
      if (gid.index == *index) return gid;
    }
    return Status(Code::kNotFound,
                  fmt::format("port {} has no GID {}; there are: {}", port.number, *index, gid_list(port.gids)))
        .with_advice("leave the GID index unset: the best one is found by itself (hawser topo shows the table)");
  }
  const std::vector<GidScore> table = score_gids(port.gids, port.netdev, peer);
  if (!table.empty() && table.front().usable) return table.front().gid;
  const std::string netdev = port.netdev.empty() ? "INTERFACE" : port.netdev;
  return Status(Code::kNotFound,
                fmt::format("port {} has no usable GID; there are: {}", port.number, gid_list(port.gids)))
      .with_advice(fmt::format("give its interface an address: sudo ip address add A.B.C.D/24 dev {}", netdev));
}

bool needs_global_route(const PortInfo& port, const Gid& own, const GidBytes& peer, std::uint16_t peer_lid) {
  if (port.link_layer != LinkLayer::kInfiniBand) return true;
  const bool other_subnet = !std::equal(own.bytes.begin(), own.bytes.begin() + 8, peer.begin());
  return peer_lid == 0 || (other_subnet && !is_zero(peer));
}

}  // namespace hawser::backend::verbs
