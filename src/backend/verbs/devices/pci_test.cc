// C17 of the conformance list, what concerns PCI, on trees made up for it.

#include "backend/verbs/devices/pci.h"

#include <gtest/gtest.h>

#include "backend/verbs/devices/device_test_tree.h"

namespace hawser::backend::verbs {
namespace {

// A switch: its upstream port, with two ports below, has a device on either.
constexpr const char* kSwitch = "pci0000:00/0000:00:01.0/0000:01:00.0";
const std::string kNear = std::string(kSwitch) + "/0000:02:00.0/0000:03:00.0";
const std::string kNearToo = std::string(kSwitch) + "/0000:02:01.0/0000:04:00.0";

PciPath path_between(const SysfsTree& tree, const char* a, const char* b) {
  return pci_path(find_pci_place(tree.root(), *parse_pci_address(a)),
                  find_pci_place(tree.root(), *parse_pci_address(b)));
}

TEST(C17Pci, PciAddressesAreReadAndWritten) {
  EXPECT_EQ(parse_pci_address("0000:65:00.1")->to_string(), "0000:65:00.1");
  EXPECT_EQ(parse_pci_address("65:1f.7")->to_string(), "0000:65:1f.7");
  EXPECT_EQ(parse_pci_address("10000:e1:00.0")->to_string(), "10000:e1:00.0") << "domains of virtual buses are longer";
  EXPECT_LT(*parse_pci_address("0000:09:00.0"), *parse_pci_address("0000:10:00.0"));
  for (const char* text : {"", "65", "65:00", "pci0000:00", "0000:65:00", "0000:65:00.8", "0000:65:20.0", "00:65:00.0",
                           "0000:6g:00.0", "0000:65:00.", ":65:00.0", "0000:065:00.0", "mlx5_0", "0000:65:00.0 "}) {
    EXPECT_FALSE(parse_pci_address(text)) << text;
  }
}

TEST(C17Pci, PathClassesAreOrderedBestFirst) {
  EXPECT_LT(PathClass::kPix, PathClass::kPxb);
  EXPECT_LT(PathClass::kPxb, PathClass::kPhb);
  EXPECT_LT(PathClass::kPhb, PathClass::kSys);
  EXPECT_LT(PathClass::kSys, PathClass::kDis);
}

TEST(C17Pci, AClassCountsBeforeBandwidth) {
  EXPECT_TRUE((PciPath{PathClass::kPix, 1}).better_than({PathClass::kPxb, 1000}));
  EXPECT_TRUE((PciPath{PathClass::kPhb, 2}).better_than({PathClass::kPhb, 1}));
  EXPECT_FALSE((PciPath{PathClass::kPhb, 1}).better_than({PathClass::kPhb, 1}));
  EXPECT_FALSE((PciPath{PathClass::kSys, 1000}).better_than({PathClass::kPhb, 1}));
}

TEST(C17Pci, LanesOfEachGeneration) {
  EXPECT_EQ(pcie_lane_mbit_per_s("2.5 GT/s PCIe"), 1500u);
  EXPECT_EQ(pcie_lane_mbit_per_s("5.0 GT/s PCIe"), 3000u);
  EXPECT_EQ(pcie_lane_mbit_per_s("8.0 GT/s PCIe"), 6000u);
  EXPECT_EQ(pcie_lane_mbit_per_s("8 GT/s"), 6000u) << "as older kernels write it";
  EXPECT_EQ(pcie_lane_mbit_per_s("16.0 GT/s PCIe"), 12000u);
  EXPECT_EQ(pcie_lane_mbit_per_s("32.0 GT/s PCIe"), 24000u);
  EXPECT_EQ(pcie_lane_mbit_per_s("64.0 GT/s PCIe"), 48000u);
  EXPECT_EQ(pcie_lane_mbit_per_s("Unknown"), std::nullopt);
  EXPECT_EQ(pcie_lane_mbit_per_s(""), std::nullopt);
}

TEST(C17Pci, AMissingLinkCountsAsGeneration3With16Lanes) {
  EXPECT_EQ(pcie_link_mbit_per_s("", ""), 96000u);
  EXPECT_EQ(pcie_link_mbit_per_s("Unknown", "255"), 96000u);
  EXPECT_EQ(pcie_link_mbit_per_s("32.0 GT/s PCIe", "0"), 384000u);
  EXPECT_EQ(pcie_link_mbit_per_s("16.0 GT/s PCIe", "8"), 96000u);
  const SysfsTree tree;
  tree.pci(kNear, 0);
  EXPECT_EQ(find_pci_place(tree.root(), *parse_pci_address("0000:03:00.0"))->hops.back().mbit_per_s, 96000u);
}

TEST(C17Pci, BelowOneSwitchIsPix) {
  const SysfsTree tree;
  tree.pci(kNear, 0);
  tree.pci(kNearToo, 0);
  EXPECT_EQ(path_between(tree, "0000:03:00.0", "0000:04:00.0").path_class, PathClass::kPix);
}

TEST(C17Pci, TheLinkAboveWhatIsCommonDoesNotCount) {
  const SysfsTree tree;
  tree.pci(kNear, 0);
  tree.pci(kNearToo, 0);
  tree.pci_link(kSwitch, "2.5 GT/s PCIe", "1");
  tree.pci_link(kNear, "32.0 GT/s PCIe", "16");
  EXPECT_EQ(path_between(tree, "0000:03:00.0", "0000:04:00.0"), (PciPath{PathClass::kPix, 96000}));
  tree.pci_link(kNearToo, "16.0 GT/s PCIe", "4");
  EXPECT_EQ(path_between(tree, "0000:03:00.0", "0000:04:00.0"), (PciPath{PathClass::kPix, 48000}));
}

TEST(C17Pci, ThroughSeveralSwitchesIsPxb) {
  const SysfsTree tree;
  tree.pci(kNear, 0);
  tree.pci(std::string(kSwitch) + "/0000:02:01.0/0000:04:00.0/0000:05:00.0/0000:06:00.0", 0);
  EXPECT_EQ(path_between(tree, "0000:03:00.0", "0000:06:00.0").path_class, PathClass::kPxb);
}

TEST(C17Pci, ThroughTheProcessorIsPhbWithinANodeAndSysBetween) {
  const SysfsTree tree;
  tree.pci(kNear, 0);
  tree.pci("pci0000:00/0000:00:02.0/0000:07:00.0", 0);
  tree.pci("pci0000:40/0000:40:01.0/0000:41:00.0", 0);
  tree.pci("pci0000:80/0000:80:01.0/0000:81:00.0", 1);
  tree.pci_link("pci0000:80/0000:80:01.0", "5.0 GT/s PCIe", "8");
  EXPECT_EQ(path_between(tree, "0000:03:00.0", "0000:07:00.0").path_class, PathClass::kPhb) << "one host bridge";
  EXPECT_EQ(path_between(tree, "0000:03:00.0", "0000:41:00.0").path_class, PathClass::kPhb) << "one node";
  EXPECT_EQ(path_between(tree, "0000:03:00.0", "0000:81:00.0"), (PciPath{PathClass::kSys, 24000}));
}

TEST(C17Pci, AnUnknownNodeIsStillReachable) {
  const SysfsTree tree;
  tree.pci(kNear, -1);
  tree.pci("pci0000:40/0000:40:01.0/0000:41:00.0", -1);
  EXPECT_EQ(path_between(tree, "0000:03:00.0", "0000:41:00.0").path_class, PathClass::kSys);
}

TEST(C17Pci, WhatIsNotOnPciIsOutOfReach) {
  const SysfsTree tree;
  tree.pci(kNear, 0);
  EXPECT_EQ(path_between(tree, "0000:03:00.0", "0000:99:00.0"), (PciPath{PathClass::kDis, 0}));
}

TEST(C17Pci, MemoryOfANodeIsNearToItsDevices) {
  const SysfsTree tree;
  tree.pci(kNear, 1);
  tree.pci("pci0000:40/0000:40:01.0/0000:41:00.0", -1);
  const auto place = find_pci_place(tree.root(), *parse_pci_address("0000:03:00.0"));
  EXPECT_EQ(numa_path(place, 1).path_class, PathClass::kPhb);
  EXPECT_EQ(numa_path(place, 0).path_class, PathClass::kSys);
  EXPECT_EQ(numa_path(find_pci_place(tree.root(), *parse_pci_address("0000:41:00.0")), 0).path_class, PathClass::kSys);
  EXPECT_EQ(numa_path(std::nullopt, 0).path_class, PathClass::kSys) << "a software device";
}

// Devices on the auxiliary bus (subfunctions of a NIC) hang below their PCI device.
TEST(C17Pci, ADeviceBelowAPciDeviceIsWhereThatIs) {
  const SysfsTree tree;
  tree.pci(kNear, 1);
  tree.put("devices/" + kNear + "/mlx5_core.sf.4/numa_node", "-1");
  const auto place = read_pci_place(tree.root() + "/devices/" + kNear + "/mlx5_core.sf.4");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->address().to_string(), "0000:03:00.0");
  EXPECT_EQ(place->numa_node, 1);
  EXPECT_EQ(place->root, "pci0000:00");
  EXPECT_EQ(place->hops.size(), 4u);
}

}  // namespace
}  // namespace hawser::backend::verbs
