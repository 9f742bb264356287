#pragma once

// Which ports of this host are used, and in which order: those with the best path to where the memory is.
//
// Thread rule: values and pure functions, but for the callback and for reads of sysfs.
// Lifetime: a LocalPort points into the devices it was chosen from.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

#include "backend/verbs/devices/device.h"
#include "backend/verbs/gpu/gpu_driver.h"

namespace hawser::backend::verbs {

/// What ports shall be near to, as a user writes it: "cpu:0", "cuda:1", "nic:mlx5_0"; "cpu" and "cuda" mean number 0.
struct Hint {
  enum class Kind : std::uint8_t { kNone, kCpu, kCuda, kNic };
  Kind kind = Kind::kNone;
  std::uint32_t number = 0;  ///< NUMA node or CUDA ordinal.
  std::string nic;
};
/// An empty text is no hint. Errors: kInvalid with the text and the forms there are.
Result<Hint> parse_hint(std::string_view text);

struct ChooseOptions {
  /// "mlx5_0" or, one port of it, "mlx5_0:1". Empty: all. Their order does not matter.
  std::vector<std::string> devices;
  std::string hint;
  /// PCI address of a CUDA device by its ordinal. Absent: there is no CUDA here.
  std::function<Result<PciAddress>(std::uint32_t ordinal)> cuda_pci;
  std::string sysfs_root = "/sys";
};

struct LocalPort {
  const DeviceInfo* device = nullptr;
  const PortInfo* port = nullptr;
  PciPath path;            ///< To what the hint names, capped by the port's speed; without a hint kPix and the speed.
  std::uint32_t rank = 0;  ///< 0: as good as any; 1: as good as the next; ports of one rank are equal.
};

/// The usable ports, best first, equal ones in the order of their names. Never empty.
/// Errors: kInvalid (hint), kNotFound (no device at all; a device, a port, a NUMA node that is not here),
/// kUnsupported (a port that is not active, a device that no backend can drive): with the name and with what there is.
Result<std::vector<LocalPort>> choose_ports(std::span<const DeviceInfo> devices, const ChooseOptions& options);

/// For ChooseOptions::cuda_pci. The driver outlives it.
std::function<Result<PciAddress>(std::uint32_t ordinal)> cuda_pci_of(GpuDriver& driver);

/// Why a port cannot be used, or good.
Status usable(const DeviceInfo& device, const PortInfo& port);

}  // namespace hawser::backend::verbs
