#include "backend/verbs/gpu/pointer.h"

#include <string>

#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::verbs {
namespace {

std::string name_of(Device device) {
  return device.kind == DeviceKind::kCuda ? base::format("cuda:{}", device.ordinal) : std::string("the host");
}

}  // namespace

Result<PointerFacts> classify(GpuDriver* driver, std::uintptr_t address) {
  if (driver == nullptr) return PointerFacts{};
  HAWSER_TRY_ASSIGN(const GpuPointer pointer, driver->pointer(address));
  PointerFacts facts{.kind = pointer.kind, .ordinal = pointer.ordinal, .buffer_id = pointer.buffer_id};
  if (facts.on_gpu()) {
    HAWSER_TRY_ASSIGN(facts.allocation, driver->allocation(address));
  }
  return facts;
}

Status check_device(GpuDriver* driver, std::uintptr_t address, std::size_t size, Device device) {
  for (const std::uintptr_t at : {address, address + (size != 0 ? size - 1 : 0)}) {
    HAWSER_TRY_ASSIGN(const PointerFacts facts, classify(driver, at));
    if (facts.kind == MemoryKind::kManaged) {
      return Status(Code::kUnsupported, base::format("{:#x} is managed memory, which moves", at))
          .with_advice("allocate with cudaMalloc, or use host memory");
    }
    if (facts.device() == device) continue;
    return Status(Code::kInvalid,
                  base::format("{:#x} is memory of {}, not of {}", at, name_of(facts.device()), name_of(device)));
  }
  return {};
}

}  // namespace hawser::backend::verbs
