#pragma once

// The parts of every function of the NIXL face: handles, codes, and a line on stderr for what went wrong, because
// NIXL's codes say so little.
//
// Thread rule: thread-safe.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "api/handles.h"
#include "api/nixl/nixl_capi.h"
#include "api/nixl/objects.h"

namespace hawser::nixl {

api::Handles& handles();

/// Says a warning or an error on stderr, unless NIXL_LOG_LEVEL is FATAL (errors) or above WARN (warnings).
void say_error(std::string_view call, std::string_view text) noexcept;
void say_warning(std::string_view call, std::string_view text) noexcept;

/// Says why and gives `code`.
nixl_capi_status_t refuse(const char* call, nixl_capi_status_t code, std::string_view why) noexcept;
/// The number of the C ABI for what went wrong, which tells less than NIXL's codes do.
nixl_capi_status_t fold(const Status& status);
nixl_capi_status_t refuse(const char* call, const Status& status) noexcept;
nixl_capi_status_t refuse_exception(const char* call) noexcept;

/// Runs a function's body, which gives a status. Nothing is thrown further.
template <typename Body>
nixl_capi_status_t run(const char* call, Body body) noexcept {
  try {
    return body(call);
  } catch (...) {
    return refuse_exception(call);
  }
}

/// Good or not: its number, and a line when it is not.
inline nixl_capi_status_t answer(const char* call, const Status& status) {
  return status.ok() ? NIXL_CAPI_SUCCESS : refuse(call, status);
}

template <typename T, typename Handle>
Result<api::Handles::Ref<T>> find(const char* call, Handle handle) {
  return handles().find<T>(call, reinterpret_cast<std::uintptr_t>(handle));
}

template <typename T, typename Handle>
nixl_capi_status_t give(const char* call, Handle* out, std::unique_ptr<T> object) {
  const Result<std::uint64_t> id = handles().add(call, std::move(object));
  if (!id) return refuse(call, id.error());
  *out = reinterpret_cast<Handle>(static_cast<std::uintptr_t>(*id));
  return NIXL_CAPI_SUCCESS;
}

template <typename T, typename Handle>
nixl_capi_status_t destroy(const char* call, Handle handle) {
  return run(call, [&](const char* name) {
    const Status status = handles().release<T>(name, reinterpret_cast<std::uintptr_t>(handle));
    return status.ok() ? NIXL_CAPI_SUCCESS : refuse(name, status);
  });
}

}  // namespace hawser::nixl

/// In a body with `call`: declares `name`, the object behind `handle`, or answers "invalid parameter".
#define NIXL_FIND(name, Type, handle)                                                 \
  const auto name##_found = ::hawser::nixl::find<::hawser::nixl::Type>(call, handle); \
  if (!name##_found) return ::hawser::nixl::refuse(call, name##_found.error());       \
  ::hawser::nixl::Type& name = **name##_found;                                        \
  (void)name

/// As above, where the object itself is not needed.
#define NIXL_NAMES(Type, handle)                                                                              \
  if (const auto number = reinterpret_cast<std::uintptr_t>(handle);                                           \
      !::hawser::nixl::handles().names<::hawser::nixl::Type>(number)) {                                       \
    return ::hawser::nixl::refuse(call, ::hawser::api::Handles::unknown<::hawser::nixl::Type>(call, number)); \
  }

#define NIXL_NOT_NULL(pointer)                                                                              \
  if ((pointer) == nullptr) {                                                                               \
    return ::hawser::nixl::refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, std::string(#pointer) + " is null"); \
  }

/// In a body with `call`: declares `name`, the optional arguments behind a handle that may be null, or null.
#define NIXL_OPTIONS(name, handle)                                                   \
  std::optional<::hawser::api::Handles::Ref<::hawser::nixl::OptArgs>> name##_pin;    \
  const ::hawser::compat::OptArgs* name = nullptr;                                   \
  if ((handle) != nullptr) {                                                         \
    auto name##_found = ::hawser::nixl::find<::hawser::nixl::OptArgs>(call, handle); \
    if (!name##_found) return ::hawser::nixl::refuse(call, name##_found.error());    \
    name = &name##_pin.emplace(std::move(*name##_found))->args;                      \
  }
