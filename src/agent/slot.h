#pragma once

// A slot is the state of one transfer, from submit to final; a Transfer handle points to it.
//
// Slots live in a pool that outlives the agent as long as handles do, so a handle is one pointer and submitting
// allocates nothing once the pool is warm. The part above the line is shared with other threads, the part below is
// confined to the lane.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hawser/completion.h>
#include <hawser/transfer.h>

#include "agent/fork_guard.h"
#include "agent/plan.h"
#include "base/intrusive_list.h"
#include "base/spin.h"

namespace hawser::agent {

class SlotPool;
class QueueCore;

enum class Phase : std::uint8_t { kFree, kInFlight, kFinal };

/// Where a held-back or a finished transfer's local word is. The region is held by the slot.
struct LocalWord {
  std::shared_ptr<LocalRegion> region;
  std::atomic<std::uint64_t>* word = nullptr;
  std::uint64_t value = 0;
};

/// A signal at the target, as its message will carry it.
struct RemoteWord {
  std::shared_ptr<const RemoteRegion> region;  ///< Null: none.
  std::uint64_t offset = 0;
  std::uint64_t add = 0;
};

struct Slot {
  // Shared. `status` is written before `phase` becomes kFinal (release) and is constant from then on.
  std::atomic<Phase> phase{Phase::kFree};
  std::atomic<bool> cancel_asked{false};
  std::atomic<std::uint64_t> bytes_done{0};
  Status status;
  SlotPool* pool = nullptr;
  std::uint32_t index = 0;
  bool handle_held = false;        ///< Under the pool's lock.
  std::uint32_t followers_in = 0;  ///< Slots whose `leader` it is. Under the pool's lock.

  // ---- From submit to final confined to the lane.
  std::shared_ptr<PlanCore> plan;
  std::shared_ptr<QueueCore> queue;
  std::uint64_t cookie = 0;
  std::uint64_t label = 0;
  Priority priority = Priority::kBulk;
  bool durable = false;
  bool has_extras = false;  ///< `queue`, `signal`, `after`, `leader` or `done_word` may be there.
  Instant submitted;
  Instant deadline = Instant::max();
  std::optional<std::size_t> notify_size;  ///< Present: `notify` holds the text. The string keeps its capacity.
  std::string notify;
  RemoteWord signal;
  LocalWord after, done_word;
  Slot* leader = nullptr;  ///< Begins once that one has ended well. It is not used again before this one lets go of it.

  std::uint64_t id = 0;          ///< Names the transfer at the peer.
  std::uint32_t next_chunk = 0;  ///< The first chunk never offered to a path.
  std::uint32_t in_flight = 0;   ///< Chunks taken by a path and not ended.
  std::uint32_t done_chunks = 0;
  std::vector<std::uint32_t> again;  ///< Chunks to offer again after their path was lost.
  Status outcome;                    ///< First error, or the reason of the early end. Fixed once set.
  bool place_taken = false;          ///< In the inbox of the peer.
  bool arrive_sent = false;          ///< The peer was told of it.
  bool uncounted = false;            ///< After that, a path carried chunks that does not count them at the peer.
  bool touched = false;              ///< Bytes of it may have been moved.
  bool torn = false;                 ///< A chunk of it ended with some of its bytes moved, and not all.
  std::uint32_t unsure = 0;          ///< Chunks' ends of which nobody knows what became of the bytes.
  bool has_use = false;              ///< It is the one transfer of grants that are for one.
  bool is_held = false;              ///< Its `after` word or its leader is waited for.
  bool ending = false;               ///< No further chunks; final once in_flight is 0.
  base::ListHook pending_hook;       ///< In its session's list of transfers with work to offer, or of held ones.
  base::ListHook flight_hook;        ///< In the lane's list of all that are in flight.
  base::ListHook session_hook;       ///< In its session's list of the same.
  base::ListHook covered_hook;       ///< In its session's list of covered transfers, oldest first.

  bool covered() const { return notify_size.has_value() || signal.region != nullptr; }
  /// Calls `visit(region)` for each region of this agent that it touches: its plan's, and those that its words lie in.
  template <typename Visit>
  void for_each_local(Visit&& visit) const {
    for (const auto& region : plan->locals) visit(*region);
    if (!has_extras) return;
    const auto is_of_plan = [this](const auto& region) {
      return std::ranges::find(plan->locals, region) != plan->locals.end();
    };
    if (after.region && !is_of_plan(after.region)) visit(*after.region);
    if (done_word.region && done_word.region != after.region && !is_of_plan(done_word.region)) visit(*done_word.region);
  }
  void forget_extras();

  /// Held until this one is final. They stand in a list by their pending_hook.
  base::IntrusiveList<Slot, &Slot::pending_hook> followers;
};

/// Good while all regions of this agent that it touches are open. Any thread; the lane looks again.
Status check_locals(const Slot& slot);

/// Takes the place in the peer's inbox that a covered transfer needs, once. kBusy when there is none. Any thread.
Status take_place(Slot& slot, PeerCore& peer);
void give_place_back(Slot& slot, PeerCore& peer);

class SlotPool {
 public:
  explicit SlotPool(std::uint32_t limit) : limit_(limit) {}

  /// Null when `limit` transfers are in flight or held.
  Slot* take();
  /// The lane is done with it: free it unless a handle is held.
  void finished(Slot* slot);
  /// The handle is gone: free it if it is final.
  void drop_handle(Slot* slot);
  /// `follower` waits for `leader`, whose handle the caller has: until it lets go the slot is not used again.
  void follow(Slot& follower, Slot& leader);
  void unfollow(Slot& follower);
  Slot* at(std::uint32_t index) { return segments_[index / kSegment].get() + index % kSegment; }
  /// The agent is gone; the pool goes with the last handle.
  void orphan();
  std::uint32_t in_use() const { return in_use_.load(std::memory_order_relaxed); }
  std::uint32_t limit() const { return limit_; }

  /// Whether the agent was opened by the process that this one was forked from.
  bool disowned() const { return forks_ != forks_so_far(); }

  std::weak_ptr<Core> core;  ///< For waiting handles.

 private:
  static constexpr std::uint32_t kSegment = 256;
  void recycle(Slot* slot) HAWSER_REQUIRES(lock_);
  void recycle_if_unused(Slot* slot) HAWSER_REQUIRES(lock_);

  const std::uint32_t limit_;
  const std::uint32_t forks_ = watch_forks();
  base::SpinLock lock_;
  std::vector<std::unique_ptr<Slot[]>> segments_;  ///< Reserved to its bound: `at` needs no lock.
  std::vector<std::uint32_t> free_ HAWSER_GUARDED_BY(lock_);
  std::uint32_t made_ HAWSER_GUARDED_BY(lock_) = 0;
  std::atomic<std::uint32_t> in_use_{0};
  std::uint32_t handles_ HAWSER_GUARDED_BY(lock_) = 0;
  bool orphaned_ HAWSER_GUARDED_BY(lock_) = false;
};

}  // namespace hawser::agent
