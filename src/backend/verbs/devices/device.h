#pragma once

// DeviceInfo: an RDMA device of this host as sysfs tells it: its ports, their addresses, and where it is attached. No
// libibverbs is needed; what the kernel does not tell is empty or 0, and nothing that is missing is an error.
//
// Thread rule: values; reading is a pure read. What was read does not follow later changes: read again.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/verbs/devices/gid.h"
#include "backend/verbs/devices/pci.h"

namespace hawser::backend::verbs {

enum class Transport : std::uint8_t {
  kUnknown,
  kInfiniBand,  ///< InfiniBand and RoCE.
  kIwarp,       ///< Connects by rdma_cm only.
  kEfa,         ///< Scalable reliable datagrams of AWS.
};
std::string to_string(Transport transport);

enum class LinkLayer : std::uint8_t { kUnknown, kInfiniBand, kEthernet };
std::string to_string(LinkLayer link_layer);

enum class PortState : std::uint8_t { kUnknown, kDown, kInit, kArmed, kActive, kActiveDefer };
std::string to_string(PortState state);

struct PortInfo {
  std::uint8_t number = 1;
  PortState state = PortState::kUnknown;
  LinkLayer link_layer = LinkLayer::kUnknown;
  std::uint16_t lid = 0;
  std::uint16_t sm_lid = 0;
  std::uint64_t mbit_per_s = 0;  ///< 0: unknown.
  /// Bytes; 0: unknown. From sysfs alone it is what the interface's MTU has room for; device_query.h asks the device.
  std::uint32_t active_mtu = 0;
  std::string netdev;     ///< Its own interface: that of its first GID, else the device's only one.
  std::vector<Gid> gids;  ///< Those in use, by index.
  /// The kernel's, of all processes (files of `counters` and `hw_counters`), as it names them; see read_counters.
  std::vector<std::pair<std::string, std::uint64_t>> counters = {};

  bool active() const { return state == PortState::kActive; }
};

struct DeviceInfo {
  std::string name;       ///< "mlx5_0".
  std::string node_guid;  ///< "b86b:d3ff:fed1:87ec".
  std::string driver;     ///< "mlx5_core"; what a software device calls itself ("rxe").
  std::string firmware;
  std::string uverbs;  ///< Its file in /dev/infiniband: "uverbs0".
  Transport transport = Transport::kUnknown;
  std::uint16_t pci_vendor = 0;  ///< 0x15b3, 0x1d0f; 0: not on PCI.
  std::uint16_t pci_device = 0;
  int numa_node = -1;           ///< -1: unknown.
  std::optional<PciPlace> pci;  ///< Its own; for a software device that of the NIC below it.
  std::vector<std::string> netdevs;
  std::vector<PortInfo> ports;  ///< By number.
};

/// A GID table takes three files for each of its entries, and some have 1,024: who opens the device asks it instead.
enum class GidTables : std::uint8_t { kRead, kLeave };

/// All devices, in the order of their names (mlx5_2 before mlx5_10). Empty where there is none.
std::vector<DeviceInfo> read_devices(const std::string& sysfs_root, GidTables gids = GidTables::kRead);
/// Those of this host, with the subnets of their addresses, which sysfs does not know.
std::vector<DeviceInfo> read_devices(GidTables gids = GidTables::kRead);
/// One port's, by index.
std::vector<Gid> read_gids(const std::string& sysfs_root, const std::string& device, std::uint8_t port,
                           LinkLayer link_layer);
/// Fills in `prefix_bits` of those that are addresses of this host's interfaces.
void add_subnets(std::span<Gid> gids);
/// PortInfo::netdev: the kernel fills a port's table from its own interface first, then from those above it.
std::string own_netdev(const PortInfo& port, const DeviceInfo& device);

/// Fills in the counters of all ports, as they are now.
void read_counters(const std::string& sysfs_root, std::span<DeviceInfo> devices);

/// "rxe0, rxe1", or "none": for messages.
std::string names_of(std::span<const DeviceInfo> devices);
/// Numbers within names by value.
bool name_before(std::string_view a, std::string_view b);

/// Port speed by the codes of ibv_port_attr (active_speed, active_width); 0 for unknown ones.
std::uint64_t port_mbit_per_s(std::uint32_t active_speed, std::uint32_t active_width);
/// The largest RDMA MTU that an Ethernet interface of this MTU carries; 0: none.
std::uint32_t rdma_mtu_of(std::uint32_t ethernet_mtu);

/// The GID to use: by index where the user chose one, else the best of score_gids.
/// Errors: kNotFound (no such index, no usable GID) with those that there are; kUnsupported (an index that no queue
/// pair can name).
Result<Gid> best_gid(const PortInfo& port, std::optional<std::uint32_t> index = {}, std::span<const Gid> peer = {});
/// Whether an address handle from this port needs a global route: always on Ethernet; on InfiniBand when the peer is in
/// another subnet or has no LID.
bool needs_global_route(const PortInfo& port, const Gid& own, const GidBytes& peer, std::uint16_t peer_lid);

}  // namespace hawser::backend::verbs
