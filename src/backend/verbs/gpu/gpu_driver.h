#pragma once

// GpuDriver: what registration needs to know of a GPU's memory, and how it gets at it. The real one is the CUDA driver,
// opened at run time; GpuFake stands in for it in tests.
//
// It makes no context and initialises nothing that a process without GPU work would pay for: pointers are only known to
// a driver that their owner has initialised. Only what is asked by a GPU's number initialises it (cuInit, no context).
//
// Thread rule: any thread. Lifetime: outlives what was made with it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "backend/address_space.h"
#include "base/fd.h"

namespace hawser::backend::verbs {

/// Where a pointer points.
enum class MemoryKind : std::uint8_t {
  kHost,        ///< Plain memory of this process.
  kPinnedHost,  ///< Host memory that CUDA allocated or registered: to a NIC it is host memory.
  kGpu,         ///< A GPU's memory.
  kManaged,     ///< Moves between host and GPU by itself: no NIC may hold on to it.
};
std::string_view to_string(MemoryKind kind);

struct GpuPointer {
  MemoryKind kind = MemoryKind::kHost;
  int ordinal = -1;             ///< Of the GPU; -1 for plain host memory.
  std::uint64_t buffer_id = 0;  ///< Unique to the allocation in this process: tells two at one address apart. 0: none.
};

class GpuDriver {
 public:
  virtual ~GpuDriver() = default;
  /// For people: which library was opened, or "fake".
  virtual std::string describe() const = 0;
  virtual Result<int> device_count() = 0;
  /// "0000:3b:00.0", as sysfs spells it.
  virtual Result<std::string> pci_address(int ordinal) = 0;
  /// Whether the GPU's memory can be exported as a dmabuf.
  virtual Result<bool> exports_dmabuf(int ordinal) = 0;
  /// What it does not know is host memory.
  virtual Result<GpuPointer> pointer(std::uintptr_t address) = 0;
  /// The allocation (or the mapping) of a GPU's memory that `address` lies in.
  virtual Result<AddressRange> allocation(std::uintptr_t address) = 0;
  /// A dmabuf of whole pages of a GPU's memory. The caller closes it.
  virtual Result<base::Fd> export_dmabuf(AddressRange pages) = 0;
  /// From now on copies that claim to be synchronous are, also for somebody who looks from the bus.
  virtual void synchronise_copies(std::uintptr_t address) = 0;
};

/// A driver, or why there is none.
struct GpuAccess {
  std::shared_ptr<GpuDriver> driver;  ///< May be null.
  Status missing;
  std::string sysfs_root = "/sys";  ///< Where the kernel's modules are looked for.
};

/// Opens libcuda.so.1. kUnsupported with the loader's words where there is none.
Result<std::unique_ptr<GpuDriver>> open_cuda_driver();

}  // namespace hawser::backend::verbs
