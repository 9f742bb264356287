#pragma once

// HeldTransfers: transfers that wait for their `after` word, or for the transfer that they follow.
//
// Anyone may store to the word, this process, a peer or a device, and no bell tells of it: it is looked at in each
// turn, and by one who sleeps in pauses that grow. A leader's end is told by `call_followers`, and acted on at the end
// of the turn: it comes in the midst of loops over transfers.
//
// Thread rule: confined to the lane.

#include <cstddef>
#include <cstdint>

#include <hawser/status.h>
#include <hawser/time.h>

#include "agent/slot.h"
#include "base/intrusive_list.h"

namespace hawser::agent {

inline constexpr std::uint32_t kHeldMax = 4096;  ///< Transfers that wait; beyond: kBusy.

class HeldTransfers {
 public:
  /// True where it may not begin yet.
  static bool must_wait(const Slot& slot);
  /// Good unless the transfer that it was to follow ended badly.
  static Status lost_leader(const Slot& slot);

  bool is_full() const { return count_ >= kHeldMax; }
  std::uint32_t count() const { return count_; }
  void hold(Slot& slot);
  /// It does not wait any more, whatever becomes of it. Nothing where it did not.
  void let_off(Slot& slot);

  /// The leader is final: its followers are to be looked at.
  void call_followers(Slot& leader);
  bool has_called() const { return !called_.empty(); }
  /// One whose leader is final; null when there is no further one. It waits no more in any list.
  Slot* next_called() { return called_.pop_front(); }
  /// A called one has its leader, and waits for its word.
  void wait_for_word(Slot& slot) { by_word_.push_back(slot); }

  /// True where some wait for words.
  bool has_waiting() const { return !by_word_.empty(); }
  /// Calls `begin(slot)` for each whose word is there.
  template <typename Begin>
  std::size_t begin_reached(Begin&& begin) {
    std::size_t begun = 0;
    for (Slot& slot : by_word_) {
      if (!is_reached(slot)) continue;
      begin(slot);
      ++begun;
    }
    return begun;
  }
  /// Somebody is about to sleep: when the words are to be looked at again.
  void put_off(Instant now);
  Instant look_again() const { return by_word_.empty() ? Instant::max() : look_again_; }

 private:
  /// Between two looks of a sleeper at the words. The pause doubles while nothing comes.
  static constexpr Duration kPause = std::chrono::microseconds(50);
  static constexpr Duration kPauseMax = std::chrono::milliseconds(1);

  static bool is_reached(const Slot& slot);

  base::IntrusiveList<Slot, &Slot::pending_hook> by_word_;
  base::IntrusiveList<Slot, &Slot::pending_hook> called_;  ///< Nearly always empty.
  std::uint32_t count_ = 0;
  Duration pause_ = kPause;
  Instant look_again_ = Instant::max();  ///< Of no meaning while nobody sleeps.
};

}  // namespace hawser::agent
