#pragma once

// Atomic operations on a 64-bit word of a peer's region: fetch-add and compare-swap.
//
// They are done by the CPU of the region's owner, in its agent, whatever path leads there. So all of them, signals, and
// the owner's own std::atomic_ref operations on the word are atomic to each other. Writes of transfers are not: a word
// has one class of writer. The owner's agent must make progress (a driver, or polls) for an operation to be done.
//
// An operation is done once or not at all. Lost paths are survived: its message travels in the session. When the
// session itself is lost, or a deadline or cancel comes first, nobody repeats it: the status then says by its
// buffer() whether the word is kUntouched, or kUnknown: it may have been done, now or a moment later.
//
// Thread rule: starting is thread-safe; an AtomicOp belongs to one thread at a time.

#include <cstdint>
#include <memory>

#include <hawser/completion.h>
#include <hawser/export.h>
#include <hawser/memory.h>
#include <hawser/status.h>
#include <hawser/time.h>

namespace hawser::agent {
struct AtomicCore;
}

HAWSER_NAMESPACE_BEGIN

class Agent;

struct AtomicOptions {
  Duration deadline = Duration::zero();  ///< From now; zero means the agent's default.
  CompletionQueue* queue = nullptr;      ///< Where to report, as a kTransfer of 8 bytes; none: only the AtomicOp tells.
  std::uint64_t cookie = 0;              ///< Comes back in the completion.
};

/// One operation in flight. Move-only. Dropping it cancels.
class HAWSER_API AtomicOp {
 public:
  AtomicOp() = default;
  explicit AtomicOp(std::shared_ptr<agent::AtomicCore> core) : core_(std::move(core)) {}
  AtomicOp(AtomicOp&&) noexcept = default;
  AtomicOp& operator=(AtomicOp&& other) noexcept;
  ~AtomicOp();

  /// Final? Only looks; where no driver runs, Agent::poll or wait make progress.
  bool done() const;
  /// Waits until final, making progress where no driver does. kTimedOut with Scope::kRequest and `done() == false`
  /// when `timeout` ran out first; the operation goes on.
  Status wait(Duration timeout = Duration::max());
  /// Asks for the end: kCancelled unless it ended before.
  void cancel();
  Status status() const;  ///< The outcome: good while in flight.
  /// The word's former value, once it ended well; else 0. A compare-swap took place when this is what it expected.
  std::uint64_t found() const;

 private:
  std::shared_ptr<agent::AtomicCore> core_;
};

/// Adds `add` to the word (it wraps) and finds what it held. `word`: 8 bytes, aligned to 8 in its region and in its
/// owner's memory, of a region in host memory with the rights to read and write. Errors: kInvalid, kDenied,
/// kUnsupported (memory that is not the host's), kBusy (4096 wait for room already), kDisconnected.
HAWSER_API Result<AtomicOp> fetch_add(const Agent& agent, const RemoteRange& word, std::uint64_t add,
                                      const AtomicOptions& options = {});
/// Stores `desired` where the word holds `expected`, and finds what it held. Otherwise as fetch_add.
HAWSER_API Result<AtomicOp> compare_swap(const Agent& agent, const RemoteRange& word, std::uint64_t expected,
                                         std::uint64_t desired, const AtomicOptions& options = {});

HAWSER_NAMESPACE_END
