#pragma once

// The part of the CUDA driver's C interface that CudaDriver calls, declared here because no CUDA headers are needed to
// build this library. Names and numbers are those of its public documentation.
//
// Thread rule: CudaDriver from any thread. Lifetime: CudaDriver owns the library.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "backend/verbs/gpu/gpu_driver.h"
#include "base/dylib.h"

namespace hawser::backend::verbs {

using CudaResult = int;
using CudaAddress = unsigned long long;
using CudaContext = void*;
using CudaDevice = int;

inline constexpr CudaResult kCudaSuccess = 0;
inline constexpr CudaResult kCudaInvalidValue = 1;
inline constexpr CudaResult kCudaOutOfMemory = 2;
inline constexpr CudaResult kCudaNotInitialized = 3;
inline constexpr CudaResult kCudaDeinitialized = 4;
inline constexpr CudaResult kCudaNoDevice = 100;
inline constexpr CudaResult kCudaInvalidDevice = 101;
inline constexpr CudaResult kCudaInvalidContext = 201;
inline constexpr CudaResult kCudaNotFound = 500;
inline constexpr CudaResult kCudaNotPermitted = 800;
inline constexpr CudaResult kCudaNotSupported = 801;

inline constexpr int kPointerContext = 1;
inline constexpr int kPointerMemoryType = 2;
inline constexpr int kPointerSyncMemops = 6;
inline constexpr int kPointerBufferId = 7;
inline constexpr int kPointerIsManaged = 8;
inline constexpr int kPointerOrdinal = 9;

inline constexpr unsigned kMemoryTypeHost = 1;
inline constexpr unsigned kMemoryTypeDevice = 2;
inline constexpr unsigned kMemoryTypeUnified = 4;

inline constexpr int kDevicePciBus = 33;
inline constexpr int kDevicePciDevice = 34;
inline constexpr int kDevicePciDomain = 50;
inline constexpr int kDeviceDmabuf = 124;

inline constexpr int kHandleDmabuf = 1;

/// Functions by their exported names. Optional ones may be null: older drivers lack them.
struct CudaTable {
  CudaResult (*init)(unsigned) = nullptr;                                           // cuInit
  CudaResult (*device_count)(int*) = nullptr;                                       // cuDeviceGetCount
  CudaResult (*device_get)(CudaDevice*, int) = nullptr;                             // cuDeviceGet
  CudaResult (*device_attribute)(int*, int, CudaDevice) = nullptr;                  // cuDeviceGetAttribute
  CudaResult (*pointer_attributes)(unsigned, int*, void**, CudaAddress) = nullptr;  // cuPointerGetAttributes
  CudaResult (*set_pointer_attribute)(const void*, int, CudaAddress) = nullptr;     // cuPointerSetAttribute
  CudaResult (*address_range)(CudaAddress*, std::size_t*, CudaAddress) = nullptr;   // cuMemGetAddressRange_v2
  CudaResult (*push_context)(CudaContext) = nullptr;                                // cuCtxPushCurrent_v2
  CudaResult (*pop_context)(CudaContext*) = nullptr;                                // cuCtxPopCurrent_v2
  CudaResult (*primary_state)(CudaDevice, unsigned*, int*) = nullptr;               // optional
  CudaResult (*primary_retain)(CudaContext*, CudaDevice) = nullptr;                 // optional
  CudaResult (*primary_release)(CudaDevice) = nullptr;                              // optional
  CudaResult (*range_handle)(void*, CudaAddress, std::size_t, int,
                             unsigned long long) = nullptr;      // optional: CUDA 11.7
  CudaResult (*error_name)(CudaResult, const char**) = nullptr;  // cuGetErrorName
};

class CudaDriver final : public GpuDriver {
 public:
  /// `library`: what the table's functions are of; none in tests.
  CudaDriver(const CudaTable& table, std::optional<base::Dylib> library)
      : library_(std::move(library)), table_(table) {}

  std::string describe() const override { return library_ ? library_->name() : "a table of functions"; }
  Result<int> device_count() override;
  Result<std::string> pci_address(int ordinal) override;
  Result<bool> exports_dmabuf(int ordinal) override;
  Result<GpuPointer> pointer(std::uintptr_t address) override;
  Result<AddressRange> allocation(std::uintptr_t address) override;
  Result<base::Fd> export_dmabuf(AddressRange pages) override;
  void synchronise_copies(std::uintptr_t address) override;

 private:
  Status error(std::string_view what, CudaResult result) const;
  Status start();
  Result<int> device_attribute(int ordinal, int attribute);
  /// Calls `call`; where it wants a current context, once more with the one that `address` belongs to, or with its
  /// GPU's primary context if that is in use. Never makes one.
  template <typename Call>
  CudaResult with_context(std::uintptr_t address, Call call);
  template <typename Call>
  CudaResult in_context(CudaContext context, Call call);
  template <typename Call>
  CudaResult in_primary_context(int ordinal, Call call);

  const std::optional<base::Dylib> library_;
  const CudaTable table_;
};

}  // namespace hawser::backend::verbs
