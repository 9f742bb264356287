// The C ABI: atomic operations.

#include <optional>

#include "api/c/objects.h"

namespace hawser::api {
namespace {

/// AtomicOptions, and the values that it points to.
struct AtomicRequest {
  AtomicOptions options;
  std::optional<Handles::Ref<QueueObject>> queue;
};

Status prepare_atomic(const char* call, const hawser_atomic_options* from, AtomicRequest& its) {
  HAWSER_TRY_ASSIGN(const hawser_atomic_options given, options_of(call, "hawser_atomic_options", from));
  if (given.deadline_ns < 0) return invalid(call, "deadline_ns is negative");
  its.options.deadline = Duration(given.deadline_ns);
  its.options.cookie = given.cookie;
  if (given.queue.id == 0) return {};
  HAWSER_TRY_ASSIGN(auto queue, find<QueueObject>(call, given.queue));
  its.queue.emplace(std::move(queue));
  its.options.queue = &(*its.queue)->queue;
  return {};
}

/// `ask(agent, word, options)` starts the operation.
template <typename Ask>
Status start_atomic(const char* call, hawser_agent agent, hawser_peer peer, const hawser_remote_range* word,
                    const hawser_atomic_options* options, hawser_atomic* out, Ask ask) {
  HAWSER_TRY(not_null(call, word, "word"));
  HAWSER_TRY(not_null(call, out, "out"));
  HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
  HAWSER_TRY_ASSIGN(const auto whom, find<PeerObject>(call, peer));
  HAWSER_TRY_ASSIGN(const RemoteRange range, remote_range(whom->peer, *word));
  AtomicRequest request;
  HAWSER_TRY(prepare_atomic(call, options, request));
  // The handle is made first: an operation that nobody could be told of must not begin.
  auto object = std::make_unique<AtomicObject>();
  AtomicObject* const made = object.get();
  hawser_atomic handle{};
  HAWSER_TRY(give_handle(call, &handle, std::move(object)));
  Result<AtomicOp> started = ask(its->agent, range, request.options);
  if (!started) {
    (void)handles().release<AtomicObject>(call, handle.id);
    return started.error();
  }
  made->op = std::move(*started);
  *out = handle;
  return {};
}

hawser_atomic_info info_of(const AtomicOp& op) {
  hawser_atomic_info info{.done = op.done() ? 1u : 0u};
  if (info.done == 0) return info;
  const Status status = op.status();
  if (status.ok()) {
    info.found = op.found();
    return info;
  }
  info.code = static_cast<std::int32_t>(status.code());
  info.scope = static_cast<std::uint32_t>(status.scope());
  info.state = static_cast<std::uint32_t>(status.buffer());
  return info;
}

}  // namespace
}  // namespace hawser::api

using namespace hawser;
using namespace hawser::api;

int hawser_atomic_fetch_add(hawser_agent agent, hawser_peer peer, const hawser_remote_range* word, uint64_t add,
                            const hawser_atomic_options* options, hawser_atomic* out) {
  return run(__func__, [&](const char* call) -> Status {
    return start_atomic(call, agent, peer, word, options, out,
                        [&](const Agent& its, const RemoteRange& range, const AtomicOptions& with) {
                          return fetch_add(its, range, add, with);
                        });
  });
}

int hawser_atomic_compare_swap(hawser_agent agent, hawser_peer peer, const hawser_remote_range* word, uint64_t expected,
                               uint64_t desired, const hawser_atomic_options* options, hawser_atomic* out) {
  return run(__func__, [&](const char* call) -> Status {
    return start_atomic(call, agent, peer, word, options, out,
                        [&](const Agent& its, const RemoteRange& range, const AtomicOptions& with) {
                          return compare_swap(its, range, expected, desired, with);
                        });
  });
}

int hawser_atomic_info_get(hawser_atomic atomic, hawser_atomic_info* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<AtomicObject>(call, atomic));
    return give(call, "hawser_atomic_info", out, info_of(its->op));
  });
}

int hawser_atomic_wait(hawser_atomic atomic, int64_t timeout_ns) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<AtomicObject>(call, atomic));
    return its->op.wait(timeout_of(timeout_ns));
  });
}

int hawser_atomic_cancel(hawser_atomic atomic) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<AtomicObject>(call, atomic));
    its->op.cancel();
    return {};
  });
}

int hawser_atomic_release(hawser_atomic atomic) { return release<AtomicObject>(__func__, atomic); }
