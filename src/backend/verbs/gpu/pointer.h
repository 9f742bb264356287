#pragma once

// What a pointer points to, as registration and the choice of a NIC need to know it.
//
// Thread rule: any thread. Works without a GPU driver: all memory is the host's then.

#include <cstddef>
#include <cstdint>

#include <hawser/memory.h>
#include <hawser/status.h>

#include "backend/address_space.h"
#include "backend/verbs/gpu/gpu_driver.h"

namespace hawser::backend::verbs {

struct PointerFacts {
  MemoryKind kind = MemoryKind::kHost;
  int ordinal = -1;             ///< Of the GPU that owns it, or knows it; -1: none.
  std::uint64_t buffer_id = 0;  ///< As GpuPointer's.
  AddressRange allocation;      ///< Of GPU memory; empty for the host's.

  bool on_gpu() const { return kind == MemoryKind::kGpu; }
  /// To a NIC: {kCuda, ordinal}, or the host, also for what CUDA pinned there.
  Device device() const { return on_gpu() ? Device{DeviceKind::kCuda, static_cast<std::uint32_t>(ordinal)} : Device{}; }
};

/// `driver` may be null. Managed memory is an answer too: who registers refuses it.
Result<PointerFacts> classify(GpuDriver* driver, std::uintptr_t address);
inline Result<PointerFacts> classify(GpuDriver* driver, const void* address) {
  return classify(driver, reinterpret_cast<std::uintptr_t>(address));
}

/// Good when all of the range is of the device that `device` says; else what it is instead.
Status check_device(GpuDriver* driver, std::uintptr_t address, std::size_t size, Device device);

}  // namespace hawser::backend::verbs
