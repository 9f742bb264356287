#pragma once

// The parts of every function of the C ABI: handles, the last error, structs with a size, buffers.
//
// Thread rule: thread-safe; the last error is each thread's own.

#include <hawser/c.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include <hawser/status.h>
#include <hawser/time.h>
#include <hawser/transfer.h>

#include "api/handles.h"
#include "base/try.h"

namespace hawser::api {

Handles& handles();

/// Keeps `status` for hawser_last_error and gives its code.
int remember(const Status& status) noexcept;
/// For what was thrown: in here nobody throws but the allocator and the standard library.
int remember_exception(const char* call) noexcept;

/// Runs a function's body, which returns a Status. Nothing is thrown further.
template <typename Body>
int run(const char* call, Body body) noexcept {
  try {
    const Status status = body(call);
    return status.ok() ? HAWSER_OK : remember(status);
  } catch (...) {
    return remember_exception(call);
  }
}

Status invalid(std::string_view call, std::string_view what);
/// Of HAWSER_PRIORITY_*; HAWSER_PRIORITY_DEFAULT is `usual`.
Result<Priority> priority_of(const char* call, std::uint32_t number, Priority usual);
inline Status not_null(const char* call, const void* pointer, std::string_view name) {
  return pointer != nullptr ? Status() : invalid(call, std::string(name) + " is null");
}
/// kInvalid for a null pointer to something.
inline Status not_null(const char* call, const void* pointer, std::size_t count, std::string_view name) {
  return count == 0 ? Status() : not_null(call, pointer, name);
}

/// Room for T that the caller said to have: at least `least` bytes, and nothing set that is not known here.
Status check_size(const char* call, std::string_view type, const void* given, std::size_t known, std::size_t least);

/// An options struct: `given` may be null. `least` is its size in the first version that had it.
template <typename T>
Result<T> options_of(const char* call, std::string_view type, const T* given, std::size_t least = sizeof(T)) {
  T known{};
  if (given == nullptr) return known;
  HAWSER_TRY(check_size(call, type, given, sizeof(T), least));
  std::memcpy(&known, given, std::min<std::size_t>(given->size, sizeof(T)));
  return known;
}

/// Fills a struct of the caller, as far as its header knows it.
template <typename T>
Status give(const char* call, std::string_view type, T* out, T value, std::size_t least = sizeof(T)) {
  HAWSER_TRY(not_null(call, out, type));
  const std::size_t room = out->size;
  if (room < least) return check_size(call, type, out, sizeof(T), least);
  value.size = static_cast<std::uint32_t>(std::min(room, sizeof(T)));
  std::memcpy(out, &value, value.size);
  return {};
}

/// A copy of `bytes` from malloc, with a zero behind it.
Status give(const char* call, hawser_buffer* out, std::string_view bytes);

/// Makes a handle of an object made by `T{...}`. `Handle` is one of c.h's.
template <typename T, typename Handle>
Status give_handle(const char* call, Handle* out, std::unique_ptr<T> object) {
  HAWSER_TRY_ASSIGN(const std::uint64_t id, handles().add(call, std::move(object)));
  out->id = id;
  return {};
}

template <std::size_t N>
void copy_name(char (&out)[N], std::string_view name) {
  const std::size_t size = std::min(name.size(), N - 1);
  std::memcpy(out, name.data(), size);
  out[size] = '\0';
}

inline std::string_view text_of(const char* text) { return text == nullptr ? std::string_view() : text; }
inline std::span<const std::byte> bytes_of(const void* data, std::size_t size) {
  return {static_cast<const std::byte*>(data), size};
}
inline Duration timeout_of(std::int64_t ns) { return Duration(std::max<std::int64_t>(ns, 0)); }

}  // namespace hawser::api
