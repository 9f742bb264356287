#pragma once

// Plans and transfers: prepared once, posted many times.
//
// A Plan is ranges validated, paired and merged. Submitting it makes a Transfer, which ends exactly once with a typed
// status. A cancelled or expired transfer is *final* only when nothing can touch its local memory any more.
//
// Order. Nothing orders two transfers that are in flight at once: not the order of their submits, not one path, not one
// address. The bytes of one transfer land in no order either. To make an order, wait for the first transfer, or submit
// the second with `SubmitOptions::after_transfer`; to have one notification for many blocks, put them into one plan
// (ranges of any regions of one peer, or Plan::join).
//
// Visibility. A write that ended well: all of its bytes are in the target's memory. A read that ended well: all of its
// bytes are in this agent's memory. A notification, or a signal word that has grown: the bytes of the transfer that
// carried it are visible to the thread at the target that took or saw it. docs/order.md has examples.
//
// Thread rule: a Plan may be submitted from several threads; a Transfer belongs to one thread at a time.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <hawser/completion.h>
#include <hawser/export.h>
#include <hawser/memory.h>
#include <hawser/status.h>
#include <hawser/time.h>

namespace hawser::agent {
struct PlanCore;
struct Slot;
}  // namespace hawser::agent

HAWSER_NAMESPACE_BEGIN

class Transfer;

enum class Priority : std::uint8_t { kCritical = 0, kRealtime = 1, kBulk = 2 };
enum class Operation : std::uint8_t { kWrite = 1, kRead = 2 };

/// A 64-bit word in a region of the target that the transfer adds `add` to, once its bytes are visible.
struct SignalTarget {
  RemoteRange word;  ///< 8 bytes, aligned to 8, in a region with the right to write.
  std::uint64_t add = 1;
};

/// A 64-bit word of this agent: wait until it is at least `value`, or set it to `value` when done.
struct SignalWord {
  LocalRange word;
  std::uint64_t value = 0;
};

struct SubmitOptions {
  /// Delivered to the peer once, after the bytes are visible. Copied by submit. An empty but present one is
  /// delivered too.
  std::optional<std::string_view> notify = {};
  Duration deadline = Duration::zero();  ///< From now; zero means the agent's default.
  Priority priority = Priority::kBulk;
  CompletionQueue* queue = nullptr;  ///< Where to report; none: only the Transfer tells.
  std::uint64_t cookie = 0;          ///< Comes back in the completion.
  std::uint64_t label = 0;           ///< Agent::end ends all of one label; 0 means none.
  /// A write into files ends only once its bytes are on the device (fsync). For plans whose far side is files.
  bool durable = false;
  const SignalTarget* signal = nullptr;
  /// Post only once this word reached its value (or the deadline passed). Signals of peers are seen at once; where
  /// others store to it, an agent that sleeps sees that within 1 ms. 4096 transfers may wait, for words and for
  /// transfers together; beyond: kBusy.
  const SignalWord* after = nullptr;
  /// Post only once this transfer of the same agent has ended well; it may go to any peer. If it ends otherwise, this
  /// one ends kCancelled, its bytes untouched, and says why. Its handle may go meanwhile, which cancels it as ever.
  const Transfer* after_transfer = nullptr;
  const SignalWord* done = nullptr;  ///< Set this word when the transfer ended well.
};

/// One submission in flight. Move-only. Dropping it cancels; its regions stay held until it is quiet.
class HAWSER_API Transfer {
 public:
  Transfer() = default;
  explicit Transfer(agent::Slot* slot) : slot_(slot) {}
  /// One that ended well before it had a handle.
  static Transfer ended(std::uint64_t bytes) {
    Transfer transfer;
    transfer.ended_bytes_ = bytes;
    return transfer;
  }
  Transfer(Transfer&& other) noexcept
      : slot_(std::exchange(other.slot_, nullptr)), ended_bytes_(std::exchange(other.ended_bytes_, kNotEnded)) {}
  Transfer& operator=(Transfer&& other) noexcept;
  ~Transfer() {
    if (slot_ != nullptr) drop();
  }

  /// Final? Only looks; where no driver runs, Agent::poll or wait make progress.
  bool done() const { return slot_ == nullptr ? ended_bytes_ != kNotEnded : is_final(); }
  /// Waits until final, making progress where no driver does. Good: ended well. kTimedOut with Scope::kRequest and
  /// `final() == false` when `timeout` ran out first; the transfer goes on.
  Status wait(Duration timeout = Duration::max());
  /// Asks for the end. The outcome is kCancelled unless it ended before; `wait` tells when it is final.
  void cancel();
  /// The outcome: good while in flight, final once `done()`.
  Status status() const;
  std::uint64_t bytes() const;  ///< Bytes moved so far.

 private:
  friend struct Inside;
  static constexpr std::uint64_t kNotEnded = ~std::uint64_t{0};
  void drop();
  bool is_final() const;

  agent::Slot* slot_ = nullptr;            ///< Null: the handle is empty, or what it names is over.
  std::uint64_t ended_bytes_ = kNotEnded;  ///< Bytes of a transfer that was over when submit returned.
};

/// A validated, prepared transfer. Cheap to copy; copies are the same plan.
class HAWSER_API Plan {
 public:
  Plan() = default;
  explicit Plan(std::shared_ptr<agent::PlanCore> core) : core_(std::move(core)) {}

  /// One plan of all of them, in their order: it moves as one transfer, with one end, one notification and one signal.
  /// For blocks of several tables (a region for each layer): plan each, join once, submit often. Costs a copy of the
  /// pieces; pieces that become neighbours are merged. Errors: kInvalid when there is none, or when they differ in
  /// agent, peer or operation.
  static Result<Plan> join(std::span<const Plan> plans);
  /// Joins them, and submits what they are together. For a group that is submitted once.
  static Result<Transfer> submit_group(std::span<const Plan> plans, const SubmitOptions& options = {});

  /// Starts one transfer. Bounded: does the whole of a small transfer on the spot and hands the rest to the lane.
  /// Errors: kBusy (a bound was reached; the message names it), kDisconnected (the peer is gone or restarted: plan
  /// again), kInvalid, kDenied.
  Result<Transfer> submit(const SubmitOptions& options = {}) const;

  Operation operation() const;
  std::uint64_t bytes() const;
  std::uint64_t range_count() const;  ///< Pairs of ranges as given.
  std::uint64_t piece_count() const;  ///< Pieces after merging neighbours.

 private:
  friend struct Inside;
  std::shared_ptr<agent::PlanCore> core_;
};

HAWSER_NAMESPACE_END
