#pragma once

// GpuFake: a GpuDriver for tests, with allocations that the test lists and dmabufs that are real descriptors.
//
// Thread rule: one thread at a time. Lifetime: a test's own.

#include <fcntl.h>
#include <sys/mman.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backend/verbs/gpu/gpu_driver.h"

namespace hawser::backend::verbs {

class GpuFake final : public GpuDriver {
 public:
  struct Allocation {
    std::size_t size = 0;
    std::uint64_t buffer_id = 0;
    int ordinal = 0;
    MemoryKind kind = MemoryKind::kGpu;
  };

  std::map<std::uintptr_t, Allocation> allocations;  ///< By address.
  int gpus = 1;
  bool dmabufs = true;
  std::function<bool()> fails = [] { return false; };  ///< Whether this call fails.
  std::function<void()> on_export = [] {};             ///< Something that happens meanwhile.
  std::vector<AddressRange> exported;
  int synchronised = 0;

  const Allocation* find(std::uintptr_t address) const {
    const auto after = allocations.upper_bound(address);
    if (after == allocations.begin()) return nullptr;
    const auto& [base, allocation] = *std::prev(after);
    return address - base < allocation.size ? &allocation : nullptr;
  }

  std::string describe() const override { return "fake"; }
  Result<int> device_count() override {
    if (fails()) return failure();
    return gpus;
  }
  Result<std::string> pci_address(int ordinal) override {
    if (fails()) return failure();
    return "0000:0" + std::to_string(ordinal) + ":00.0";
  }
  Result<bool> exports_dmabuf(int) override {
    if (fails()) return failure();
    return dmabufs;
  }
  Result<GpuPointer> pointer(std::uintptr_t address) override {
    if (fails()) return failure();
    const Allocation* allocation = find(address);
    if (allocation == nullptr) return GpuPointer{};
    return GpuPointer{allocation->kind, allocation->ordinal, allocation->buffer_id};
  }
  Result<AddressRange> allocation(std::uintptr_t address) override {
    if (fails()) return failure();
    const Allocation* found = find(address);
    if (found == nullptr) return Status(Code::kInvalid, "no GPU memory there");
    const std::uintptr_t base = std::prev(allocations.upper_bound(address))->first;
    return AddressRange{base, base + found->size};
  }
  Result<base::Fd> export_dmabuf(AddressRange pages) override {
    on_export();
    if (fails()) return failure();
    if (!dmabufs) return Status(Code::kUnsupported, "no dmabufs");
    if (pages.begin % 4096 != 0 || pages.end % 4096 != 0) return Status(Code::kInvalid, "not whole pages");
    exported.push_back(pages);
    return base::Fd(::memfd_create("dmabuf", MFD_CLOEXEC));
  }
  void synchronise_copies(std::uintptr_t) override { ++synchronised; }

 private:
  static Status failure() { return Status(Code::kFailed, "told to fail"); }
};

}  // namespace hawser::backend::verbs
