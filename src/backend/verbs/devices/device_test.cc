#include "backend/verbs/devices/device.h"

#include <gtest/gtest.h>

#include "backend/verbs/devices/device_files.h"
#include "backend/verbs/devices/device_test_tree.h"

namespace hawser::backend::verbs {
namespace {

constexpr const char* kZero = "0000:0000:0000:0000:0000:0000:0000:0000";

// As a kernel with Soft-RoCE shows it: no link `device`, the interface by `parent` and by the GIDs' attributes.
void add_rxe(const SysfsTree& tree, const std::string& name, const std::string& netdev) {
  const std::string folder = "class/infiniband/" + name;
  tree.put(folder + "/node_type", "1: CA");
  tree.put(folder + "/node_desc", "rxe");
  tree.put(folder + "/node_guid", "b86b:d3ff:fed1:87ec");
  tree.put(folder + "/parent", netdev);
  tree.port(name, "1", "4: ACTIVE", "10 Gb/sec (1X FDR10)");
  tree.put(folder + "/ports/1/lid", "0x0");
  tree.gid(name, "0", "fe80:0000:0000:0000:b86b:d3ff:fed1:87ec", "RoCE v2", netdev);
  tree.gid(name, "1", "0000:0000:0000:0000:0000:ffff:0a4d:0001", "RoCE v2", netdev);
  tree.put(folder + "/ports/1/gids/2", kZero);
  tree.put("class/net/" + netdev + "/mtu", "9000");
  tree.put("class/infiniband_verbs/uverbs0/ibdev", name);
}

TEST(VerbsDevice, SoftRoceIsRead) {
  const SysfsTree tree;
  add_rxe(tree, "rxe0", "veth0");
  const auto devices = read_devices(tree.root());
  ASSERT_EQ(devices.size(), 1u);
  const DeviceInfo& device = devices[0];
  EXPECT_EQ(device.name, "rxe0");
  EXPECT_EQ(device.driver, "rxe");
  EXPECT_EQ(device.node_guid, "b86b:d3ff:fed1:87ec");
  EXPECT_EQ(device.uverbs, "uverbs0");
  EXPECT_EQ(device.transport, Transport::kInfiniBand);
  EXPECT_EQ(device.numa_node, -1);
  EXPECT_FALSE(device.pci);
  EXPECT_EQ(device.netdevs, std::vector<std::string>{"veth0"});
  ASSERT_EQ(device.ports.size(), 1u);
  const PortInfo& port = device.ports[0];
  EXPECT_TRUE(port.active());
  EXPECT_EQ(port.link_layer, LinkLayer::kEthernet);
  EXPECT_EQ(port.mbit_per_s, 10000u);
  EXPECT_EQ(port.active_mtu, 4096u);
  EXPECT_EQ(port.netdev, "veth0");
  ASSERT_EQ(port.gids.size(), 2u) << "unused entries are left out";
  EXPECT_EQ(port.gids[1].text(), "10.77.0.1");
  EXPECT_EQ(best_gid(port)->index, 1u);
}

TEST(VerbsDevice, SoftRoceOnANicIsWhereTheNicIs) {
  const SysfsTree tree;
  add_rxe(tree, "rxe0", "eth0");
  tree.pci("pci0000:00/0000:00:01.0/0000:01:00.0", 1);
  tree.link("class/net/eth0/device", "devices/pci0000:00/0000:00:01.0/0000:01:00.0");
  const auto devices = read_devices(tree.root());
  ASSERT_TRUE(devices.at(0).pci);
  EXPECT_EQ(devices[0].pci->address().to_string(), "0000:01:00.0");
  EXPECT_EQ(devices[0].numa_node, 1);
}

TEST(VerbsDevice, AHardwareDeviceIsRead) {
  const SysfsTree tree;
  const std::string way = "pci0000:00/0000:00:01.0/0000:01:00.0";
  tree.pci(way, 1);
  tree.put("devices/" + way + "/vendor", "0x15b3");
  tree.put("devices/" + way + "/device", "0x1021");
  tree.put("devices/" + way + "/net/eth4/mtu", "9000");
  tree.link("devices/" + way + "/driver", "bus/pci/drivers/mlx5_core");
  tree.rdma("mlx5_0", way, "400 Gb/sec (4X NDR)");
  tree.put("class/infiniband/mlx5_0/fw_ver", "28.39.1002");
  const auto devices = read_devices(tree.root());
  ASSERT_EQ(devices.size(), 1u);
  const DeviceInfo& device = devices[0];
  EXPECT_EQ(device.driver, "mlx5_core");
  EXPECT_EQ(device.firmware, "28.39.1002");
  EXPECT_EQ(device.pci_vendor, 0x15b3);
  EXPECT_EQ(device.pci_device, 0x1021);
  EXPECT_EQ(device.numa_node, 1);
  EXPECT_EQ(device.pci->address().to_string(), "0000:01:00.0");
  EXPECT_EQ(device.netdevs, std::vector<std::string>{"eth4"});
  EXPECT_EQ(device.ports.at(0).netdev, "eth4") << "its only one, when no GID tells";
  EXPECT_EQ(device.ports.at(0).mbit_per_s, 400000u);
}

TEST(VerbsDevice, AnInfiniBandPortIsRead) {
  const SysfsTree tree;
  tree.put("class/infiniband/mlx4_0/node_type", "1: CA");
  tree.port("mlx4_0", "1", "4: ACTIVE", "56 Gb/sec (4X FDR)");
  tree.put("class/infiniband/mlx4_0/ports/1/link_layer", "InfiniBand");
  tree.put("class/infiniband/mlx4_0/ports/1/lid", "0x1f");
  tree.put("class/infiniband/mlx4_0/ports/1/sm_lid", "0x1");
  tree.gid("mlx4_0", "0", "fe80:0000:0000:0000:0002:c903:0000:0001", "IB/RoCE v1", "");
  const auto devices = read_devices(tree.root());
  const PortInfo& port = devices.at(0).ports.at(0);
  EXPECT_EQ(port.link_layer, LinkLayer::kInfiniBand);
  EXPECT_EQ(port.lid, 0x1f);
  EXPECT_EQ(port.sm_lid, 1);
  EXPECT_EQ(port.active_mtu, 0u);
  EXPECT_EQ(port.gids.at(0).type, GidType::kInfiniBand);
}

TEST(VerbsDevice, RoceV1IsToldFromInfiniBandByTheLink) {
  const SysfsTree tree;
  add_rxe(tree, "rxe0", "veth0");
  tree.gid("rxe0", "3", "0000:0000:0000:0000:0000:ffff:0a4d:0001", "IB/RoCE v1", "veth0");
  EXPECT_EQ(read_devices(tree.root()).at(0).ports.at(0).gids.at(2).type, GidType::kRoceV1);
}

TEST(VerbsDevice, CountersAreThoseThatAreNumbers) {
  const SysfsTree tree;
  add_rxe(tree, "rxe0", "veth0");
  const std::string folder = "class/infiniband/rxe0/ports/1/";
  tree.put(folder + "counters/port_xmit_data", "18446744073709551615");
  tree.put(folder + "counters/odd", "N/A (no PMA)");
  tree.put(folder + "hw_counters/rcvd_rnr_err", "3");
  tree.put(folder + "hw_counters/empty", "");
  auto devices = read_devices(tree.root());
  read_counters(tree.root(), devices);
  read_counters(tree.root(), devices);
  using Counters = std::vector<std::pair<std::string, std::uint64_t>>;
  EXPECT_EQ(devices.at(0).ports.at(0).counters, (Counters{{"port_xmit_data", UINT64_MAX}, {"rcvd_rnr_err", 3}}));
}

TEST(VerbsDevice, EfaIsToldByVendorAndDriver) {
  const SysfsTree tree;
  const std::string way = "pci0000:00/0000:00:06.0";
  tree.pci(way, 0);
  tree.put("devices/" + way + "/vendor", "0x1d0f");
  tree.link("devices/" + way + "/driver", "bus/pci/drivers/efa");
  tree.rdma("rdmap0s6", way);
  tree.put("class/infiniband/rdmap0s6/node_type", "7: unspecified");
  tree.put("class/infiniband/rdmap0s6/ports/1/link_layer", "Unknown");
  const auto devices = read_devices(tree.root());
  EXPECT_EQ(devices.at(0).transport, Transport::kEfa);
  EXPECT_EQ(devices.at(0).ports.at(0).link_layer, LinkLayer::kUnknown);
}

TEST(VerbsDevice, WhatIsMissingIsNoError) {
  const SysfsTree tree;
  EXPECT_TRUE(read_devices(tree.root()).empty());
  EXPECT_TRUE(read_devices("/nowhere/at/all").empty());
  tree.put("class/infiniband/bare/unknown", "");
  tree.put("class/infiniband/odd/ports/1/unknown", "");
  tree.put("class/infiniband/odd/ports/x/state", "4: ACTIVE");
  tree.put("class/infiniband/odd/ports/0/state", "4: ACTIVE");
  tree.put("class/infiniband/odd/ports/1/gids/nonsense", "fe80:0000:0000:0000:0000:0000:0000:0001");
  tree.put("class/infiniband/odd/ports/1/gids/0", "nonsense");
  tree.put("class/infiniband/odd/ports/1/rate", "fast");
  const auto devices = read_devices(tree.root());
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_TRUE(devices[0].ports.empty());
  ASSERT_EQ(devices[1].ports.size(), 1u);
  EXPECT_EQ(devices[1].ports[0].state, PortState::kUnknown);
  EXPECT_EQ(devices[1].ports[0].mbit_per_s, 0u);
  EXPECT_TRUE(devices[1].ports[0].gids.empty());
}

TEST(VerbsDevice, NumbersInNamesCountByValue) {
  EXPECT_TRUE(name_before("mlx5_2", "mlx5_10"));
  EXPECT_FALSE(name_before("mlx5_10", "mlx5_2"));
  EXPECT_TRUE(name_before("mlx5_2", "rxe0"));
  EXPECT_TRUE(name_before("mlx5", "mlx5_0"));
  EXPECT_FALSE(name_before("rxe0", "rxe0"));
  EXPECT_TRUE(name_before("rxe01", "rxe1") != name_before("rxe1", "rxe01")) << "a strict order";
}

TEST(VerbsDevice, SpeedByTheCodesOfVerbs) {
  EXPECT_EQ(port_mbit_per_s(1, 2), 10000u);
  EXPECT_EQ(port_mbit_per_s(8, 1), 10000u);
  EXPECT_EQ(port_mbit_per_s(32, 2), 100000u);
  EXPECT_EQ(port_mbit_per_s(64, 16), 100000u);
  EXPECT_EQ(port_mbit_per_s(128, 2), 400000u);
  EXPECT_EQ(port_mbit_per_s(32, 8), 300000u);
  EXPECT_EQ(port_mbit_per_s(0, 2), 0u);
  EXPECT_EQ(port_mbit_per_s(3, 2), 0u);
  EXPECT_EQ(port_mbit_per_s(32, 3), 0u);
}

TEST(VerbsDevice, MtuLeavesRoomForHeaders) {
  EXPECT_EQ(rdma_mtu_of(1500), 1024u);
  EXPECT_EQ(rdma_mtu_of(4200), 4096u);
  EXPECT_EQ(rdma_mtu_of(4191), 2048u);
  EXPECT_EQ(rdma_mtu_of(9000), 4096u);
  EXPECT_EQ(rdma_mtu_of(300), 0u);
}

TEST(VerbsDevice, NamesAreListed) {
  EXPECT_EQ(names_of({}), "none");
  const SysfsTree tree;
  add_rxe(tree, "rxe1", "veth1");
  add_rxe(tree, "rxe0", "veth0");
  EXPECT_EQ(names_of(read_devices(tree.root())), "rxe0, rxe1");
}

}  // namespace
}  // namespace hawser::backend::verbs
