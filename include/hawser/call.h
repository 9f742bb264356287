#pragma once

// Remote calls: a rank of a world calls a handler of another one by name, and gets its answer (World::call).
//
// A call is answered once, or ends by its deadline, by cancellation, or when the other rank fails. It runs at most
// once.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include <hawser/export.h>
#include <hawser/status.h>
#include <hawser/time.h>

HAWSER_NAMESPACE_BEGIN

/// The arguments of a handler. Its views hold while it runs.
struct IncomingCall {
  std::uint32_t source = 0;  ///< The rank that calls.
  std::string_view name;     ///< A handler that has a number finds it here as text.
  std::span<const std::byte> arguments;
  Duration timeout = Duration::max();  ///< The caller waits so long from now on.
  const std::atomic<bool>* cancelled = nullptr;

  /// True once no caller waits for the answer: it gave up or failed, or the world closes.
  bool is_cancelled() const { return cancelled != nullptr && cancelled->load(std::memory_order_relaxed); }
};

using CallAnswer = std::vector<std::byte>;
/// Runs on a thread of the library, several at once. The caller gets an error with the same code and text, and an
/// exception as kFailed with its text.
using CallHandler = std::function<Result<CallAnswer>(const IncomingCall& call)>;

struct HandlerOptions {
  /// Runs in the middle of the world's progress, without a thread of its own: faster, for what neither blocks nor calls
  /// anything of the world. It may look at the world without waiting, revoke it, cancel or drop requests, and drop the
  /// world's last handle: the world ends soon after then.
  bool runs_inline = false;
};

struct CallOptions {
  /// It travels with the call. Zero: the world's; in a call that a handler makes, until the handler's own deadline if
  /// that comes first.
  Duration timeout = Duration::zero();
};

HAWSER_NAMESPACE_END
