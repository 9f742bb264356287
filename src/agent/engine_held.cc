// Transfers that wait for their `after` word.
//
// Anyone may store to the word, this process, a peer or a device, and no bell tells of it: it is looked at in each
// turn, and by one who sleeps in pauses that grow.

#include <algorithm>
#include <utility>

#include "agent/core.h"
#include "agent/engine.h"

namespace hawser::agent {

bool Engine::after_reached(const Slot& slot) const {
  return slot.after.word->load(std::memory_order_acquire) >= slot.after.value;
}

void Engine::hold(Slot& slot) {
  held_.push_back(slot);
  slot.is_held = true;
  ++held_count_;
  held_pause_ = kHeldPause;
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
    let_off(slot);
    Session& its_session = session(slot.plan->peer);
    its_session.pending[static_cast<std::size_t>(slot.priority)].push_back(slot);
    enlist(its_session);
    want(its_session, now);
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
