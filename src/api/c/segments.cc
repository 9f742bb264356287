// The C ABI: an allocator's segments, which a function of the user's tells.

#include <utility>

#include "api/c/objects.h"

namespace hawser::api {
namespace {

/// More than any table of segments takes.
constexpr std::size_t kSegmentsMax = std::size_t{1} << 20;

Result<MemorySegment> segment_of(const char* call, const hawser_segment& given) {
  HAWSER_TRY(not_null(call, given.base, "base"));
  if (given.device_kind > UINT16_MAX) return invalid(call, "device_kind does not fit 16 bits");
  const auto begin = reinterpret_cast<std::uintptr_t>(given.base);
  if (given.bytes == 0 || begin + given.bytes < begin) {
    return invalid(call, std::to_string(given.bytes) + " bytes are no range of addresses");
  }
  const DeviceKind kind = given.device_kind == 0 ? DeviceKind::kCuda : static_cast<DeviceKind>(given.device_kind);
  return MemorySegment{.bytes = {static_cast<std::byte*>(given.base), given.bytes},
                       .device = {.kind = kind, .ordinal = given.device_ordinal},
                       .generation = given.generation};
}

Result<std::vector<MemorySegment>> ask(int (*tell)(void*, hawser_segments), void* context) {
  constexpr const char* kCall = "hawser_agent_options.segments";
  HAWSER_TRY_ASSIGN(const std::uint64_t id, handles().add(kCall, std::make_unique<SegmentsObject>()));
  HAWSER_TRY_ASSIGN(const auto object, handles().find<SegmentsObject>(kCall, id));
  const int code = tell(context, {id});
  HAWSER_TRY(handles().release<SegmentsObject>(kCall, id));  // Nobody is told what comes later.
  if (code != HAWSER_OK) {
    const bool is_known = code > 0 && code <= HAWSER_FAILED;
    return Status(is_known ? static_cast<Code>(code) : Code::kFailed,
                  std::string(kCall) + " gave " + std::to_string(code) + " (" + hawser_code_name(code) + ")");
  }
  const base::MutexLock lock(object->mutex);
  return std::move(object->told);
}

}  // namespace

SegmentProvider segments_of(const hawser_agent_options& options) {
  if (options.segments == nullptr) return {};
  return [tell = options.segments, context = options.segments_context] { return ask(tell, context); };
}

}  // namespace hawser::api

using namespace hawser;
using namespace hawser::api;

int hawser_segments_add(hawser_segments into, const hawser_segment* segment) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, segment, "segment"));
    HAWSER_TRY_ASSIGN(const hawser_segment given, options_of(call, "hawser_segment", segment));
    HAWSER_TRY_ASSIGN(const auto object, find<SegmentsObject>(call, into));
    HAWSER_TRY_ASSIGN(const MemorySegment told, segment_of(call, given));
    const base::MutexLock lock(object->mutex);
    if (object->told.size() >= kSegmentsMax) {
      return Status(Code::kBusy, std::string(call) + ": " + std::to_string(kSegmentsMax) + " segments are the most");
    }
    object->told.push_back(told);
    return {};
  });
}
