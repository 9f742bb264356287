#include "backend/verbs/gpu/gpu_driver.h"

#include <array>

#include "backend/verbs/gpu/gpu_driver_cuda.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::verbs {
namespace {

Code code_of(CudaResult result) {
  switch (result) {
    case kCudaInvalidValue:
    case kCudaInvalidContext:
      return Code::kInvalid;
    case kCudaOutOfMemory:
      return Code::kBusy;
    case kCudaNotInitialized:
    case kCudaDeinitialized:
    case kCudaNotSupported:
      return Code::kUnsupported;
    case kCudaNoDevice:
    case kCudaInvalidDevice:
    case kCudaNotFound:
      return Code::kNotFound;
    case kCudaNotPermitted:
      return Code::kDenied;
    default:
      return Code::kFailed;
  }
}

/// Nobody can own GPU memory then, so every pointer is the host's.
bool knows_no_pointers(CudaResult result) {
  return result == kCudaNotInitialized || result == kCudaDeinitialized || result == kCudaNoDevice ||
         result == kCudaInvalidContext || result == kCudaInvalidValue;
}

Status fill_cuda(const base::Dylib& library, CudaTable* table) {
  Status missing;
  const auto get = [&](const char* name, auto** out) { library.bind(name, out, &missing); };
  get("cuInit", &table->init);
  get("cuDeviceGetCount", &table->device_count);
  get("cuDeviceGet", &table->device_get);
  get("cuDeviceGetAttribute", &table->device_attribute);
  get("cuPointerGetAttributes", &table->pointer_attributes);
  get("cuPointerSetAttribute", &table->set_pointer_attribute);
  get("cuMemGetAddressRange_v2", &table->address_range);
  get("cuCtxPushCurrent_v2", &table->push_context);
  get("cuCtxPopCurrent_v2", &table->pop_context);
  get("cuGetErrorName", &table->error_name);
  Status optional;
  library.bind("cuDevicePrimaryCtxGetState", &table->primary_state, &optional);
  library.bind("cuDevicePrimaryCtxRetain", &table->primary_retain, &optional);
  library.bind("cuDevicePrimaryCtxRelease_v2", &table->primary_release, &optional);
  library.bind("cuMemGetHandleForAddressRange", &table->range_handle, &optional);
  return missing;
}

}  // namespace

std::string_view to_string(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kHost:
      return "host memory";
    case MemoryKind::kPinnedHost:
      return "host memory known to CUDA";
    case MemoryKind::kGpu:
      return "GPU memory";
    case MemoryKind::kManaged:
      return "managed memory";
  }
  return "unknown memory";
}

Result<std::unique_ptr<GpuDriver>> open_cuda_driver() {
  Result<base::Dylib> library = base::Dylib::open({"libcuda.so.1"});
  if (!library) {
    return Status(Code::kUnsupported, "the CUDA driver cannot be opened")
        .because(library.error())
        .with_advice("only GPU memory needs it; in a container, start it with the GPUs");
  }
  CudaTable table;
  if (Status missing = fill_cuda(*library, &table); !missing.ok()) {
    return Status(Code::kUnsupported, "the CUDA driver is too old").because(missing);
  }
  library->keep_loaded();  // It has threads of its own.
  return std::unique_ptr<GpuDriver>(new CudaDriver(table, *std::move(library)));
}

Status CudaDriver::error(std::string_view what, CudaResult result) const {
  const char* name = nullptr;
  if (table_.error_name(result, &name) != kCudaSuccess || name == nullptr) name = "unknown error";
  return Status(code_of(result), base::format("{}: {} ({})", what, name, result));
}

Status CudaDriver::start() {
  const CudaResult result = table_.init(0);
  return result == kCudaSuccess ? Status() : error("cuInit", result);
}

Result<int> CudaDriver::device_count() {
  HAWSER_TRY(start());
  int count = 0;
  if (const CudaResult result = table_.device_count(&count); result != kCudaSuccess) {
    return error("cuDeviceGetCount", result);
  }
  return count;
}

Result<int> CudaDriver::device_attribute(int ordinal, int attribute) {
  HAWSER_TRY(start());
  CudaDevice device = 0;
  if (const CudaResult result = table_.device_get(&device, ordinal); result != kCudaSuccess) {
    return error(base::format("cuDeviceGet of cuda:{}", ordinal), result);
  }
  int value = 0;
  const CudaResult result = table_.device_attribute(&value, attribute, device);
  if (result == kCudaSuccess) return value;
  return error(base::format("cuDeviceGetAttribute {} of cuda:{}", attribute, ordinal), result);
}

Result<std::string> CudaDriver::pci_address(int ordinal) {
  HAWSER_TRY_ASSIGN(const int domain, device_attribute(ordinal, kDevicePciDomain));
  HAWSER_TRY_ASSIGN(const int bus, device_attribute(ordinal, kDevicePciBus));
  HAWSER_TRY_ASSIGN(const int device, device_attribute(ordinal, kDevicePciDevice));
  return base::format("{:04x}:{:02x}:{:02x}.0", static_cast<unsigned>(domain), static_cast<unsigned>(bus),
                      static_cast<unsigned>(device));
}

Result<bool> CudaDriver::exports_dmabuf(int ordinal) {
  if (table_.range_handle == nullptr) return false;
  const Result<int> value = device_attribute(ordinal, kDeviceDmabuf);
  // Drivers that do not know the question cannot do it.
  if (!value && value.error().code() == Code::kInvalid) return false;
  if (!value) return value.error();
  return *value != 0;
}

Result<GpuPointer> CudaDriver::pointer(std::uintptr_t address) {
  unsigned type = 0;
  unsigned long long buffer_id = 0;
  unsigned managed = 0;  // A bool there; more room than it needs does no harm.
  int ordinal = -1;
  std::array<int, 4> attributes = {kPointerMemoryType, kPointerBufferId, kPointerIsManaged, kPointerOrdinal};
  std::array<void*, 4> values = {&type, &buffer_id, &managed, &ordinal};
  const CudaResult result = table_.pointer_attributes(attributes.size(), attributes.data(), values.data(), address);
  if (knows_no_pointers(result)) return GpuPointer{};
  if (result != kCudaSuccess) return error(base::format("cuPointerGetAttributes of {:#x}", address), result);
  if (managed != 0) return GpuPointer{MemoryKind::kManaged, ordinal, buffer_id};
  switch (type) {
    case kMemoryTypeDevice:
      return GpuPointer{MemoryKind::kGpu, ordinal, buffer_id};
    case kMemoryTypeHost:
      return GpuPointer{MemoryKind::kPinnedHost, ordinal, buffer_id};
    case kMemoryTypeUnified:
      return GpuPointer{MemoryKind::kManaged, ordinal, buffer_id};
    default:
      return GpuPointer{};
  }
}

template <typename Call>
CudaResult CudaDriver::in_context(CudaContext context, Call call) {
  if (const CudaResult result = table_.push_context(context); result != kCudaSuccess) return result;
  const CudaResult result = call();
  CudaContext popped = nullptr;
  table_.pop_context(&popped);
  return result;
}

template <typename Call>
CudaResult CudaDriver::in_primary_context(int ordinal, Call call) {
  const bool can =
      table_.primary_state != nullptr && table_.primary_retain != nullptr && table_.primary_release != nullptr;
  CudaDevice device = 0;
  if (!can || table_.device_get(&device, ordinal) != kCudaSuccess) return kCudaInvalidContext;
  unsigned flags = 0;
  int active = 0;
  const bool in_use = table_.primary_state(device, &flags, &active) == kCudaSuccess && active != 0;
  CudaContext context = nullptr;
  if (!in_use || table_.primary_retain(&context, device) != kCudaSuccess) return kCudaInvalidContext;
  const CudaResult result = in_context(context, call);
  table_.primary_release(device);
  return result;
}

template <typename Call>
CudaResult CudaDriver::with_context(std::uintptr_t address, Call call) {
  const CudaResult result = call();
  if (result != kCudaInvalidContext) return result;
  CudaContext context = nullptr;
  int ordinal = -1;
  std::array<int, 2> attributes = {kPointerContext, kPointerOrdinal};
  std::array<void*, 2> values = {&context, &ordinal};
  if (table_.pointer_attributes(attributes.size(), attributes.data(), values.data(), address) != kCudaSuccess) {
    return result;
  }
  // Memory that was mapped by hand (cuMemMap) belongs to no context.
  return context != nullptr ? in_context(context, call) : in_primary_context(ordinal, call);
}

Result<AddressRange> CudaDriver::allocation(std::uintptr_t address) {
  CudaAddress base = 0;
  std::size_t size = 0;
  const CudaResult result = with_context(address, [&] { return table_.address_range(&base, &size, address); });
  if (result == kCudaSuccess) return AddressRange{base, base + size};
  return error(base::format("cuMemGetAddressRange of {:#x}", address), result);
}

Result<base::Fd> CudaDriver::export_dmabuf(AddressRange pages) {
  if (table_.range_handle == nullptr) {
    return Status(Code::kUnsupported, "the CUDA driver is older than 11.7: it exports no dmabuf");
  }
  int fd = -1;
  const CudaResult result =
      with_context(pages.begin, [&] { return table_.range_handle(&fd, pages.begin, pages.size(), kHandleDmabuf, 0); });
  if (result != kCudaSuccess) {
    const std::string what = base::format("cuMemGetHandleForAddressRange of {} B at {:#x}", pages.size(), pages.begin);
    return error(what, result).with_advice("dmabufs need the open kernel modules of the NVIDIA driver, Linux 5.12");
  }
  base::Fd owned(fd);
  HAWSER_TRY(base::set_cloexec(owned.get()));
  return owned;
}

void CudaDriver::synchronise_copies(std::uintptr_t address) {
  const unsigned on = 1;
  // Memory that does not know the attribute never runs such copies behind one's back.
  (void)with_context(address, [&] { return table_.set_pointer_attribute(&on, kPointerSyncMemops, address); });
}

}  // namespace hawser::backend::verbs
