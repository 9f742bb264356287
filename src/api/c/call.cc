#include "api/c/call.h"

#include <cstdlib>
#include <exception>
#include <memory>

namespace hawser::api {
namespace {

constexpr std::size_t kStructMax = 4096;  // No struct grows beyond it: what says so has no size in its first member.

/// A thread's latest failure, and the texts that hawser_last_error points to.
struct LastError {
  Status status;
  std::string text, message, peer, device, advice;
};

// The pointer has no destructor, so that it can be used while the thread's other objects are being destroyed.
thread_local LastError* last_error = nullptr;
struct LastErrorEnd {
  ~LastErrorEnd() { delete std::exchange(last_error, nullptr); }
};
thread_local LastErrorEnd last_error_end;

void fill(LastError& last, const Status& status) {
  last.text = status.to_string();
  last.message = status.message();
  last.peer = status.peer();
  last.device = status.device();
  last.advice = status.advice();
  last.status = status;
}

}  // namespace

Handles& handles() {
  static Handles* const table = new Handles;
  return *table;
}

int remember(const Status& status) noexcept {
  try {
    (void)&last_error_end;  // Makes it, so that the thread's end frees the text.
    if (last_error == nullptr) last_error = new LastError;
    fill(*last_error, status);
  } catch (...) {
    // No memory for the text; the code is told all the same.
  }
  return static_cast<int>(status.code());
}

int remember_exception(const char* call) noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return remember(Status(Code::kFailed, std::string(call) + ": out of memory"));
    } catch (const std::exception& error) {
      return remember(Status(Code::kFailed, std::string(call) + ": " + error.what()));
    }
  } catch (...) {
    return HAWSER_FAILED;
  }
}

Status invalid(std::string_view call, std::string_view what) {
  return Status(Code::kInvalid, std::string(call) + ": " + std::string(what));
}

Result<Priority> priority_of(const char* call, std::uint32_t number, Priority usual) {
  if (number == HAWSER_PRIORITY_DEFAULT) return usual;
  if (number <= HAWSER_PRIORITY_BULK) return static_cast<Priority>(number - 1);
  return invalid(call, "priority = " + std::to_string(number) + " is none of HAWSER_PRIORITY_*");
}

Status check_size(const char* call, std::string_view type, const void* given, std::size_t known, std::size_t least) {
  std::uint32_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < least || size > kStructMax) {
    return invalid(call,
                   std::string(type) + ".size is " + std::to_string(size) + ", not at least " + std::to_string(least))
        .with_advice("begin with HAWSER_INIT(" + std::string(type) + ")");
  }
  const auto* bytes = static_cast<const unsigned char*>(given);
  for (std::size_t i = known; i < size; ++i) {
    if (bytes[i] == 0) continue;
    return invalid(call, std::string(type) + " has byte " + std::to_string(i) + " set, which this library of " +
                             std::to_string(known) + " bytes does not know")
        .with_advice("use the libhawser.so that the header is of, or a newer one");
  }
  return {};
}

Status give(const char* call, hawser_buffer* out, std::string_view bytes) {
  HAWSER_TRY(not_null(call, out, "hawser_buffer"));
  auto* data = static_cast<char*>(std::malloc(bytes.size() + 1));
  if (data == nullptr) return Status(Code::kFailed, std::string(call) + ": out of memory");
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  data[bytes.size()] = '\0';
  *out = {.data = data, .size = bytes.size()};
  return {};
}

}  // namespace hawser::api

int hawser_last_error(hawser_error* out) {
  using namespace hawser::api;
  static const LastError kNone;
  const LastError& last = last_error == nullptr ? kNone : *last_error;
  const int code = static_cast<int>(last.status.code());
  if (out == nullptr || out->size < offsetof(hawser_error, text)) return code;
  const std::uint32_t room = std::min<std::uint32_t>(out->size, sizeof(hawser_error));
  const hawser_error all{.size = room,
                         .code = code,
                         .scope = static_cast<std::uint32_t>(last.status.scope()),
                         .state = static_cast<std::uint32_t>(last.status.buffer()),
                         .bytes_done = last.status.bytes_done(),
                         .elapsed_ns = last.status.elapsed().count(),
                         .text = last.text.c_str(),
                         .message = last.message.c_str(),
                         .peer = last.peer.c_str(),
                         .device = last.device.c_str(),
                         .advice = last.advice.c_str()};
  std::memcpy(out, &all, room);
  return code;
}

void hawser_buffer_free(hawser_buffer* buffer) {
  if (buffer == nullptr) return;
  std::free(buffer->data);
  *buffer = {};
}
