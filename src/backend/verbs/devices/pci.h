#pragma once

// Where a device sits on PCI, and how near two devices are to each other: the worst thing between them, and what the
// narrowest link on the way carries.
//
// Thread rule: values; reading is a pure read of sysfs, whose root is a parameter so that trees can be made up.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hawser::backend::verbs {

struct PciAddress {
  std::uint32_t domain = 0;  ///< Virtual machine buses have domains above 16 bits.
  std::uint8_t bus = 0;
  std::uint8_t device = 0;
  std::uint8_t function = 0;

  /// "0000:65:00.0".
  std::string to_string() const;
  friend auto operator<=>(const PciAddress&, const PciAddress&) = default;
};

/// Of "0000:65:00.0" or "65:00.0"; nothing for anything else.
std::optional<PciAddress> parse_pci_address(std::string_view text);

/// One step of the way from the host bridge to a device.
struct PciHop {
  PciAddress address;
  std::uint64_t mbit_per_s = 0;  ///< What its link towards the host carries.
};

/// The way from the host bridge to a device.
struct PciPlace {
  std::string root;          ///< The host bridge: "pci0000:00".
  std::vector<PciHop> hops;  ///< From the root port to the device itself; never empty.
  int numa_node = -1;        ///< -1: unknown.

  const PciAddress& address() const { return hops.back().address; }
};

/// Best first.
enum class PathClass : std::uint8_t {
  kPix,  ///< Below one switch: at most two hops on either side of what they have in common.
  kPxb,  ///< Through several switches, without the host bridge.
  kPhb,  ///< Through the host bridge or within one NUMA node.
  kSys,  ///< Between NUMA nodes, or nobody knows where the two are.
  kDis,  ///< No way: one of them is not on PCI.
};
std::string to_string(PathClass path_class);

struct PciPath {
  PathClass path_class = PathClass::kDis;
  std::uint64_t mbit_per_s = 0;  ///< Of its narrowest link; 0 for kDis.

  /// Orders best first: class before bandwidth.
  bool better_than(const PciPath& other) const;
  friend bool operator==(const PciPath&, const PciPath&) = default;
};

/// Per lane, by the text of sysfs ("16.0 GT/s PCIe"); nothing when it says something else.
std::optional<std::uint64_t> pcie_lane_mbit_per_s(std::string_view speed);
/// Of a link by the texts of max_link_speed and max_link_width. What is missing or unknown counts as generation 3 with
/// 16 lanes.
std::uint64_t pcie_link_mbit_per_s(std::string_view speed, std::string_view width);

/// By the folder of a device, which may be a link, or a device below one on PCI. Nothing when it is not on PCI.
std::optional<PciPlace> read_pci_place(const std::string& device_folder);
/// By its address, below `sysfs_root`.
std::optional<PciPlace> find_pci_place(const std::string& sysfs_root, const PciAddress& address);

/// Between two devices; either may be unknown.
PciPath pci_path(const std::optional<PciPlace>& a, const std::optional<PciPlace>& b);
/// Between a device and the memory of a NUMA node.
PciPath numa_path(const std::optional<PciPlace>& device, int numa_node);

}  // namespace hawser::backend::verbs
