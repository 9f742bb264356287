#pragma once

// AwaitedWatch: whether somebody waits for a path's peer, as its control stream is told.
//
// The control stream's heartbeats judge the peer, but it sees no chunks. That somebody waits is told at once. That
// nobody does any more is told after a rest: chunks come and end faster than it matters.
//
// Thread rule: one thread at a time. Values; no I/O.

#include <hawser/time.h>

namespace hawser::backend::verbs {

class AwaitedWatch {
 public:
  /// Whether still somebody waits is looked at so often.
  static constexpr Duration kRest = std::chrono::milliseconds(10);

  /// The agent waits, with nothing in flight here.
  bool agent_waits() const { return agent_waits_; }
  /// The agent's word. True: the next look is due at another time.
  bool set_agent_waits(bool waits, Instant now) {
    agent_waits_ = waits;
    if (waits || !is_told_ || next_look_ != Instant::max()) return false;
    next_look_ = now + kRest;
    return true;
  }
  bool is_due(Instant now) const { return !is_told_ || now >= next_look_; }
  /// Whether somebody waits now, for the agent's sake or another. True: the control stream is to be told.
  bool look(bool is_awaited, Instant now) {
    next_look_ = is_awaited && !agent_waits_ ? now + kRest : Instant::max();
    if (is_awaited == is_told_) return false;
    is_told_ = is_awaited;
    return true;
  }
  /// So the control stream was told.
  bool is_told() const { return is_told_; }
  Instant next_look() const { return next_look_; }

 private:
  bool agent_waits_ = false;
  bool is_told_ = false;
  Instant next_look_ = Instant::max();  ///< While it is awaited, and not because the agent says so.
};

}  // namespace hawser::backend::verbs
