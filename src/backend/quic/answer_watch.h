#pragma once

// AnswerWatch: whether an opener asks, and hears nothing: perhaps its host has another address now.
//
// QUIC asks anew when an answer stays away for the probe timeout, and then after twice that (RFC 9002, section 6.2). A
// host that was stopped may take that for long: the connection is not to end as idle before it has looked.
//
// Thread rule: one thread. A value.

#include <algorithm>

#include <hawser/time.h>

namespace hawser::backend::quic {

class AnswerWatch {
 public:
  /// Something came, or it asks from another address now.
  void note_heard() {
    asked_at_ = Instant::max();
    is_unanswered_ = false;
  }
  /// Something is under way.
  void note_asked(Instant now) { asked_at_ = std::min(asked_at_, now); }
  /// A timer has passed. `timeout`: the probe timeout.
  void look(Instant now, Duration timeout, Duration idle_timeout) {
    if (asked_at_ == Instant::max()) return;
    const Duration patience = std::min<Duration>(2 * timeout, idle_timeout / 4);
    if (now - asked_at_ >= patience) is_unanswered_ = true;
  }
  bool is_asking() const { return asked_at_ != Instant::max(); }
  bool is_unanswered() const { return is_unanswered_; }

 private:
  Instant asked_at_ = Instant::max();  ///< Since then it waits for an answer and nothing came.
  bool is_unanswered_ = false;
};

}  // namespace hawser::backend::quic
