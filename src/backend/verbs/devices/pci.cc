#include "backend/verbs/devices/pci.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "backend/verbs/devices/device_files.h"

namespace hawser::backend::verbs {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kUnknownLane = 6000;  // generation 3
constexpr std::uint64_t kUnknownWidth = 16;
constexpr std::size_t kHopsBelowOneSwitch = 2;

// What is left of a lane after coding and headers.
constexpr std::array<std::pair<std::string_view, std::uint64_t>, 6> kPcieLanes = {{
    {"2.5", 1500},
    {"5", 3000},
    {"8", 6000},
    {"16", 12000},
    {"32", 24000},
    {"64", 48000},
}};

template <typename Integer>
bool parse_hex(std::string_view text, Integer& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

std::uint64_t link_of(const fs::path& folder) {
  return pcie_link_mbit_per_s(read_text(folder / "max_link_speed"), read_text(folder / "max_link_width"));
}

std::size_t common_hops(const PciPlace& a, const PciPlace& b) {
  std::size_t count = 0;
  while (count < a.hops.size() && count < b.hops.size() && a.hops[count].address == b.hops[count].address) ++count;
  return count;
}

// Of the links below the first `from` hops.
std::uint64_t narrowest(const PciPlace& place, std::size_t from) {
  std::uint64_t least = UINT64_MAX;
  for (std::size_t i = from; i < place.hops.size(); ++i) least = std::min(least, place.hops[i].mbit_per_s);
  return least;
}

PathClass class_of_nodes(int a, int b) { return a >= 0 && a == b ? PathClass::kPhb : PathClass::kSys; }

PathClass classify(const PciPlace& a, const PciPlace& b, std::size_t shared) {
  if (shared > 0) {
    const std::size_t most = std::max(a.hops.size(), b.hops.size()) - shared;
    return most <= kHopsBelowOneSwitch ? PathClass::kPix : PathClass::kPxb;
  }
  return a.root == b.root ? PathClass::kPhb : class_of_nodes(a.numa_node, b.numa_node);
}

}  // namespace

std::string PciAddress::to_string() const {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, device, function);
}

std::optional<PciAddress> parse_pci_address(std::string_view text) {
  PciAddress address;
  const std::size_t dot = text.rfind('.');
  if (dot == std::string_view::npos || text.size() != dot + 2) return std::nullopt;
  const std::size_t before_device = text.rfind(':', dot);
  if (before_device == std::string_view::npos || before_device == 0) return std::nullopt;
  const std::size_t before_bus = text.rfind(':', before_device - 1);
  if (before_bus != std::string_view::npos) {
    const std::string_view domain = text.substr(0, before_bus);
    if (domain.size() < 4 || domain.size() > 8 || !parse_hex(domain, address.domain)) return std::nullopt;
  }
  const std::size_t bus_at = before_bus == std::string_view::npos ? 0 : before_bus + 1;
  const std::string_view bus = text.substr(bus_at, before_device - bus_at);
  const std::string_view device = text.substr(before_device + 1, dot - before_device - 1);
  if (bus.size() != 2 || device.size() != 2) return std::nullopt;
  if (!parse_hex(bus, address.bus) || !parse_hex(device, address.device)) return std::nullopt;
  if (!parse_hex(text.substr(dot + 1), address.function)) return std::nullopt;
  if (address.device > 31 || address.function > 7) return std::nullopt;
  return address;
}

std::string to_string(PathClass path_class) {
  switch (path_class) {
    case PathClass::kPix:
      return "PIX";
    case PathClass::kPxb:
      return "PXB";
    case PathClass::kPhb:
      return "PHB";
    case PathClass::kSys:
      return "SYS";
    case PathClass::kDis:
      return "DIS";
  }
  return "DIS";
}

bool PciPath::better_than(const PciPath& other) const {
  if (path_class != other.path_class) return path_class < other.path_class;
  return mbit_per_s > other.mbit_per_s;
}

std::optional<std::uint64_t> pcie_lane_mbit_per_s(std::string_view speed) {
  const std::size_t unit = speed.find(" GT/s");
  if (unit == std::string_view::npos) return std::nullopt;
  std::string_view number = speed.substr(0, unit);
  if (number.ends_with(".0")) number.remove_suffix(2);
  for (const auto& [text, mbit_per_s] : kPcieLanes) {
    if (text == number) return mbit_per_s;
  }
  return std::nullopt;
}

std::uint64_t pcie_link_mbit_per_s(std::string_view speed, std::string_view width) {
  std::uint64_t lanes = 0;
  std::from_chars(width.data(), width.data() + width.size(), lanes);
  if (lanes == 0 || lanes > 32) lanes = kUnknownWidth;  // The kernel says 0 or 255 for unknown.
  return pcie_lane_mbit_per_s(speed).value_or(kUnknownLane) * lanes;
}

std::optional<PciPlace> read_pci_place(const std::string& device_folder) {
  std::error_code error;
  const fs::path whole = fs::canonical(device_folder, error);
  if (error) return std::nullopt;
  PciPlace place;
  fs::path at;
  fs::path deepest;
  for (const fs::path& part : whole) {
    at /= part;
    if (part.string().starts_with("pci") && place.hops.empty()) place.root = part.string();
    const auto address = parse_pci_address(part.string());
    if (!address || place.root.empty()) continue;
    place.hops.push_back({*address, link_of(at)});
    deepest = at;
  }
  if (place.hops.empty()) return std::nullopt;
  place.numa_node = read_int(deepest / "numa_node").value_or(-1);
  return place;
}

std::optional<PciPlace> find_pci_place(const std::string& sysfs_root, const PciAddress& address) {
  return read_pci_place(sysfs_root + "/bus/pci/devices/" + address.to_string());
}

PciPath pci_path(const std::optional<PciPlace>& a, const std::optional<PciPlace>& b) {
  if (!a || !b) return {};
  const std::size_t shared = common_hops(*a, *b);
  // The link above what both have in common carries nothing of this path.
  const std::uint64_t least = std::min(narrowest(*a, shared), narrowest(*b, shared));
  return {classify(*a, *b, shared), least};
}

PciPath numa_path(const std::optional<PciPlace>& device, int numa_node) {
  if (!device) return {PathClass::kSys, UINT64_MAX};
  return {class_of_nodes(device->numa_node, numa_node), narrowest(*device, 0)};
}

}  // namespace hawser::backend::verbs
