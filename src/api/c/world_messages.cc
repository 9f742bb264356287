// The C ABI of worlds: messages and calls.

#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "api/c/world_objects.h"

namespace hawser::api {
namespace {

std::optional<std::uint64_t> tag_of(const uint64_t* tag) {
  return tag == nullptr ? std::nullopt : std::optional<std::uint64_t>(*tag);
}

Result<MessageOptions> message_options(const char* call, const hawser_operation_options* options) {
  HAWSER_TRY_ASSIGN(const hawser_operation_options given, operation_options(call, options));
  HAWSER_TRY_ASSIGN(const Priority priority, priority_of(call, given.priority, Priority::kBulk));
  return MessageOptions{.timeout = Duration(given.timeout_ns), .exact = given.flag != 0, .priority = priority};
}

Result<Request> send(const char* call, hawser_world world, const void* data, std::size_t size, std::uint32_t dest,
                     std::uint64_t tag, const hawser_operation_options* options) {
  HAWSER_TRY(not_null(call, data, size, "data"));
  HAWSER_TRY_ASSIGN(const MessageOptions with, message_options(call, options));
  HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
  return its->world.isend(bytes_of(data, size), dest, tag, with);
}

Result<Request> receive(const char* call, hawser_world world, void* into, std::size_t size, std::uint32_t source,
                        const uint64_t* tag, const hawser_operation_options* options) {
  HAWSER_TRY_ASSIGN(const MessageOptions with, message_options(call, options));
  HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
  if (into == nullptr) {
    if (size != 0) return invalid(call, "into is null, and its size is " + std::to_string(size));
    return its->world.ireceive_any_size(source, tag_of(tag), with);
  }
  return its->world.ireceive({static_cast<std::byte*>(into), size}, source, tag_of(tag), with);
}

/// `Byte` is const where the parts are sent.
template <typename Byte>
Result<std::vector<std::span<Byte>>> parts_of(const char* call, const hawser_part* parts, std::size_t count) {
  HAWSER_TRY(not_null(call, parts, count, "parts"));
  std::vector<std::span<Byte>> all;
  for (std::size_t i = 0; i < count; ++i) {
    HAWSER_TRY(not_null(call, parts[i].data, parts[i].size, "a part's data"));
    all.emplace_back(static_cast<Byte*>(parts[i].data), parts[i].size);
  }
  return all;
}

Result<Request> sendv(const char* call, hawser_world world, const hawser_part* parts, std::size_t count,
                      std::uint32_t dest, std::uint64_t tag, const hawser_operation_options* options) {
  HAWSER_TRY_ASSIGN(const auto all, parts_of<const std::byte>(call, parts, count));
  HAWSER_TRY_ASSIGN(const MessageOptions with, message_options(call, options));
  HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
  return its->world.isend_parts(all, dest, tag, with);
}

Result<Request> receivev(const char* call, hawser_world world, const hawser_part* parts, std::size_t count,
                         std::uint32_t source, const uint64_t* tag, const hawser_operation_options* options) {
  HAWSER_TRY_ASSIGN(const auto all, parts_of<std::byte>(call, parts, count));
  HAWSER_TRY_ASSIGN(const MessageOptions with, message_options(call, options));
  HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
  return its->world.ireceive_parts(all, source, tag_of(tag), with);
}

/// `key` is a name or a number.
template <typename Key>
Result<Request> begin_call(const char* call, hawser_world world, std::uint32_t dest, Key key, const void* arguments,
                           std::size_t size, const hawser_operation_options* options) {
  if constexpr (std::is_pointer_v<Key>) HAWSER_TRY(not_null(call, key, "name"));
  HAWSER_TRY(not_null(call, arguments, size, "arguments"));
  HAWSER_TRY_ASSIGN(const hawser_operation_options given, operation_options(call, options));
  HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
  return its->world.icall(dest, key, bytes_of(arguments, size), {.timeout = Duration(given.timeout_ns)});
}

template <typename Key>
Status wait_for_call(const char* call, hawser_world world, std::uint32_t dest, Key key, const void* arguments,
                     std::size_t size, const hawser_operation_options* options, hawser_buffer* answer) {
  HAWSER_TRY(not_null(call, answer, "answer"));
  HAWSER_TRY_ASSIGN(Request begun, begin_call(call, world, dest, key, arguments, size, options));
  HAWSER_TRY(begun.wait(Duration::max()));
  const std::span<const std::byte> bytes = begun.bytes();
  return give(call, answer, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

/// Runs the caller's function for one call, with a handle for its answer that is good meanwhile.
Result<CallAnswer> ask_handler(hawser_handler handler, void* context, const IncomingCall& incoming) {
  constexpr const char* kCall = "hawser_world_register";
  auto object = std::make_unique<AnswerObject>();
  AnswerObject* const answer = object.get();
  hawser_answer handle{};
  HAWSER_TRY(give_handle(kCall, &handle, std::move(object)));
  const int code = handler(context, incoming.source, incoming.arguments.data(), incoming.arguments.size(), handle);
  Result<CallAnswer> result = CallAnswer();
  {
    const base::MutexLock lock(answer->mutex);
    if (!answer->failure.ok()) {
      result = answer->failure;
    } else if (code != HAWSER_OK) {
      const bool is_known = code > 0 && code <= HAWSER_FAILED;
      result = Status(is_known ? static_cast<Code>(code) : Code::kFailed,
                      "the handler '" + std::string(incoming.name) + "' returned " + std::to_string(code));
    } else {
      result = std::move(answer->bytes);
    }
  }
  (void)handles().release<AnswerObject>(kCall, handle.id);
  return result;
}

template <typename Key>
Status add_handler(const char* call, hawser_world world, Key key, hawser_handler handler, void* context,
                   std::uint32_t flags) {
  if (handler == nullptr) return invalid(call, "handler is null");
  constexpr std::uint32_t kFlags = HAWSER_HANDLER_INLINE;
  if ((flags & ~kFlags) != 0) return invalid(call, "flags " + std::to_string(flags) + " has unknown bits");
  HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
  return its->world.register_handler(
      key, [handler, context](const IncomingCall& incoming) { return ask_handler(handler, context, incoming); },
      {.runs_inline = (flags & HAWSER_HANDLER_INLINE) != 0});
}

}  // namespace
}  // namespace hawser::api

using namespace hawser;
using namespace hawser::api;

int hawser_world_send(hawser_world world, const void* data, size_t size, uint32_t dest, uint64_t tag,
                      const hawser_operation_options* options) {
  return run(__func__,
             [&](const char* call) -> Status { return finish(send(call, world, data, size, dest, tag, options)); });
}

int hawser_world_isend(hawser_world world, const void* data, size_t size, uint32_t dest, uint64_t tag,
                       const hawser_operation_options* options, hawser_request* request) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, request, "request"));
    return hand_out(call, send(call, world, data, size, dest, tag, options), request);
  });
}

int hawser_world_recv(hawser_world world, void* into, size_t size, uint32_t source, const uint64_t* tag,
                      const hawser_operation_options* options, hawser_received* out) {
  return run(__func__, [&](const char* call) -> Status {
    if (into == nullptr) return invalid(call, "into is null").with_advice("hawser_world_irecv makes room by itself");
    HAWSER_TRY_ASSIGN(Request begun, receive(call, world, into, size, source, tag, options));
    HAWSER_TRY(begun.wait(Duration::max()));
    return out == nullptr ? Status() : give(call, "hawser_received", out, received_of(begun.received()));
  });
}

int hawser_world_irecv(hawser_world world, void* into, size_t size, uint32_t source, const uint64_t* tag,
                       const hawser_operation_options* options, hawser_request* request) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, request, "request"));
    return hand_out(call, receive(call, world, into, size, source, tag, options), request);
  });
}

int hawser_world_sendv(hawser_world world, const hawser_part* parts, size_t count, uint32_t dest, uint64_t tag,
                       const hawser_operation_options* options) {
  return run(__func__,
             [&](const char* call) -> Status { return finish(sendv(call, world, parts, count, dest, tag, options)); });
}

int hawser_world_isendv(hawser_world world, const hawser_part* parts, size_t count, uint32_t dest, uint64_t tag,
                        const hawser_operation_options* options, hawser_request* request) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, request, "request"));
    return hand_out(call, sendv(call, world, parts, count, dest, tag, options), request);
  });
}

int hawser_world_recvv(hawser_world world, const hawser_part* parts, size_t count, uint32_t source, const uint64_t* tag,
                       const hawser_operation_options* options, hawser_received* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(Request begun, receivev(call, world, parts, count, source, tag, options));
    HAWSER_TRY(begun.wait(Duration::max()));
    return out == nullptr ? Status() : give(call, "hawser_received", out, received_of(begun.received()));
  });
}

int hawser_world_irecvv(hawser_world world, const hawser_part* parts, size_t count, uint32_t source,
                        const uint64_t* tag, const hawser_operation_options* options, hawser_request* request) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, request, "request"));
    return hand_out(call, receivev(call, world, parts, count, source, tag, options), request);
  });
}

int hawser_world_probe(hawser_world world, uint32_t source, const uint64_t* tag, int64_t timeout_ns, int* present,
                       hawser_received* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, present, "present"));
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    const std::optional<Received> found = its->world.probe(source, tag_of(tag), timeout_of(timeout_ns));
    *present = found ? 1 : 0;
    return found && out != nullptr ? give(call, "hawser_received", out, received_of(*found)) : Status();
  });
}

int hawser_world_register(hawser_world world, const char* name, hawser_handler handler, void* context, uint32_t flags) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, name, "name"));
    return add_handler(call, world, name, handler, context, flags);
  });
}

int hawser_world_register_number(hawser_world world, uint64_t number, hawser_handler handler, void* context,
                                 uint32_t flags) {
  return run(__func__, [&](const char* call) -> Status {
    return add_handler(call, world, std::uint64_t{number}, handler, context, flags);
  });
}

int hawser_answer_set(hawser_answer answer, const void* data, size_t size) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, data, size, "data"));
    HAWSER_TRY_ASSIGN(const auto its, find<AnswerObject>(call, answer));
    const std::span<const std::byte> bytes = bytes_of(data, size);
    const base::MutexLock lock(its->mutex);
    its->bytes.assign(bytes.begin(), bytes.end());
    return {};
  });
}

int hawser_answer_fail(hawser_answer answer, int code, const char* text) {
  const int refused = run(__func__, [&](const char* call) -> Status {
    if (code <= HAWSER_OK || code > HAWSER_FAILED)
      return invalid(call, "code " + std::to_string(code) + " is no error");
    HAWSER_TRY_ASSIGN(const auto its, find<AnswerObject>(call, answer));
    const base::MutexLock lock(its->mutex);
    its->failure = Status(static_cast<Code>(code), std::string(text_of(text)));
    return {};
  });
  return refused != HAWSER_OK ? refused : code;
}

int hawser_world_call(hawser_world world, uint32_t dest, const char* name, const void* arguments, size_t size,
                      const hawser_operation_options* options, hawser_buffer* answer) {
  return run(__func__, [&](const char* call) -> Status {
    return wait_for_call(call, world, dest, name, arguments, size, options, answer);
  });
}

int hawser_world_call_number(hawser_world world, uint32_t dest, uint64_t number, const void* arguments, size_t size,
                             const hawser_operation_options* options, hawser_buffer* answer) {
  return run(__func__, [&](const char* call) -> Status {
    return wait_for_call(call, world, dest, std::uint64_t{number}, arguments, size, options, answer);
  });
}

int hawser_world_icall_number(hawser_world world, uint32_t dest, uint64_t number, const void* arguments, size_t size,
                              const hawser_operation_options* options, hawser_request* request) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, request, "request"));
    return hand_out(call, begin_call(call, world, dest, std::uint64_t{number}, arguments, size, options), request);
  });
}

int hawser_world_icall(hawser_world world, uint32_t dest, const char* name, const void* arguments, size_t size,
                       const hawser_operation_options* options, hawser_request* request) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, request, "request"));
    return hand_out(call, begin_call(call, world, dest, name, arguments, size, options), request);
  });
}
