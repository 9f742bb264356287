#pragma once

// When a rank that only receives must say something. A peer that sends much over a slow link hears no answer to its
// pings for a long time: they wait behind its own bytes. So whoever hears something, and has said nothing for an
// interval, says that it lives.
//
// Thread rule: one thread at a time.

#include <hawser/time.h>

namespace hawser::proto {

class SignOfLife {
 public:
  SignOfLife(Duration interval, Instant now) : interval_(interval), spoken_(now) {}

  /// Something went out to the peer.
  void on_spoken(Instant now) { spoken_ = now; }
  /// Something came from the peer. True: a word is due, and counts as spoken.
  bool on_heard(Instant now) {
    if (now - spoken_ < interval_) return false;
    spoken_ = now;
    return true;
  }

 private:
  const Duration interval_;
  Instant spoken_;
};

}  // namespace hawser::proto
