// Transfers that wait for their `after` word, or for the transfer that they follow.
//
// Anyone may store to the word, this process, a peer or a device, and no bell tells of it: it is looked at in each
// turn, and by one who sleeps in pauses that grow. A leader's end is told by `finalize`, and acted on at the end of the
// turn: it comes in the midst of loops over transfers.

#include <algorithm>
#include <utility>

#include "agent/core.h"
#include "agent/engine.h"
#include "base/planted.h"

namespace hawser::agent {

bool Engine::after_reached(const Slot& slot) const {
  return slot.after.word->load(std::memory_order_acquire) >= slot.after.value;
}

bool Engine::must_wait(const Slot& slot) const {
  const bool has_leader = slot.leader != nullptr && !base::planted(base::Planted::kFollowerRuns);
  if (has_leader && slot.leader->phase.load(std::memory_order_acquire) != Phase::kFinal) return true;
  return slot.after.word != nullptr && !after_reached(slot);
}

void Engine::hold(Slot& slot) {
  const bool leads = slot.leader != nullptr && slot.leader->phase.load(std::memory_order_acquire) != Phase::kFinal;
  (leads ? slot.leader->followers : held_).push_back(slot);
  slot.is_held = true;
  ++held_count_;
  held_pause_ = kHeldPause;
}

Status Engine::lost_leader(const Slot& slot) {
  if (slot.leader == nullptr || slot.leader->phase.load(std::memory_order_acquire) != Phase::kFinal) return {};
  const Status& its = slot.leader->status;
  if (its.ok() || base::planted(base::Planted::kLeaderTrusted)) return {};
  return Status(Code::kCancelled, "the transfer that it was to follow (after_transfer) did not end well")
      .with_buffer(BufferState::kUntouched)
      .because(its);
}

void Engine::call_followers(Slot& leader) {
  if (base::planted(base::Planted::kFollowerLeft)) return;
  while (Slot* follower = leader.followers.pop_front()) called_.push_back(*follower);
}

std::size_t Engine::serve_called(Instant now) {
  std::size_t moved = 0;
  while (Slot* slot = called_.pop_front()) {
    ++moved;
    if (Status lost = lost_leader(*slot); !lost.ok()) {
      end_early(*slot, std::move(lost), now);
    } else if (must_wait(*slot)) {
      held_.push_back(*slot);
    } else {
      begin_held(*slot, now);
    }
  }
  return moved;
}

void Engine::begin_held(Slot& slot, Instant now) {
  let_off(slot);
  Session& its_session = session(slot.plan->peer);
  its_session.pending[static_cast<std::size_t>(slot.priority)].push_back(slot);
  enlist(its_session);
  want(its_session, now);
}

void Engine::let_off(Slot& slot) {
  if (!std::exchange(slot.is_held, false)) return;
  slot.pending_hook.unlink();
  --held_count_;
  held_pause_ = kHeldPause;
}

std::size_t Engine::check_held(Instant now) {
  std::size_t moved = 0;
  for (Slot& slot : held_) {
    if (!after_reached(slot)) continue;
    begin_held(slot, now);
    ++moved;
  }
  return moved;
}

/// Somebody is about to sleep.
void Engine::put_off_held() {
  if (held_.empty()) return;
  look_at_held_ = turned_ + held_pause_;
  held_pause_ = std::min(2 * held_pause_, kHeldPauseMax);
}

}  // namespace hawser::agent
