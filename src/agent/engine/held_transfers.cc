#include "agent/engine/held_transfers.h"

#include <algorithm>
#include <utility>

#include "base/planted.h"

namespace hawser::agent {
namespace {

bool is_final(const Slot& slot) { return slot.phase.load(std::memory_order_acquire) == Phase::kFinal; }

}  // namespace

bool HeldTransfers::is_reached(const Slot& slot) {
  return slot.after.word->load(std::memory_order_acquire) >= slot.after.value;
}

bool HeldTransfers::must_wait(const Slot& slot) {
  const bool has_leader = slot.leader != nullptr && !base::planted(base::Planted::kFollowerRuns);
  if (has_leader && !is_final(*slot.leader)) return true;
  return slot.after.word != nullptr && !is_reached(slot);
}

Status HeldTransfers::lost_leader(const Slot& slot) {
  if (slot.leader == nullptr || !is_final(*slot.leader)) return {};
  const Status& its = slot.leader->status;
  if (its.ok() || base::planted(base::Planted::kLeaderTrusted)) return {};
  return Status(Code::kCancelled, "the transfer that it was to follow (after_transfer) did not end well")
      .with_buffer(BufferState::kUntouched)
      .because(its);
}

void HeldTransfers::hold(Slot& slot) {
  const bool leads = slot.leader != nullptr && !is_final(*slot.leader);
  (leads ? slot.leader->followers : by_word_).push_back(slot);
  slot.is_held = true;
  ++count_;
  pause_ = kPause;
}

void HeldTransfers::let_off(Slot& slot) {
  if (!std::exchange(slot.is_held, false)) return;
  slot.pending_hook.unlink();
  --count_;
  pause_ = kPause;
}

void HeldTransfers::call_followers(Slot& leader) {
  if (base::planted(base::Planted::kFollowerLeft)) return;
  while (Slot* follower = leader.followers.pop_front()) called_.push_back(*follower);
}

void HeldTransfers::put_off(Instant now) {
  if (by_word_.empty()) return;
  look_again_ = now + pause_;
  pause_ = std::min(2 * pause_, kPauseMax);
}

}  // namespace hawser::agent
