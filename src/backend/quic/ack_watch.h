#pragma once

// AckWatch: whether a peer that is heard acknowledges what one stream has sent. Where it does not, datagrams of that
// size may not arrive any more (a black hole, RFC 8899, section 4.3), or QUIC has stopped to send.
//
// Thread rule: one thread. A value.

#include <hawser/time.h>

namespace hawser::backend::quic {

class AckWatch {
 public:
  /// Something of the stream is under way. `timeout`: QUIC's probe timeout, not yet doubled.
  void note_sent(Instant now, Duration timeout);
  /// The peer has got more of it, or nothing of it is sent again.
  void note_settled() { look_at_ = Instant::max(); }
  /// A datagram of the peer came. True: so much time has passed since `note_sent` that QUIC has asked three times, and
  /// this is the third datagram that acknowledges nothing of the stream; then again at each third one. A peer that was
  /// stopped for a while sends the first ones before it has read all.
  bool note_heard(Instant now, Duration timeout);
  /// How long nothing has been acknowledged; zero: nothing is under way.
  Duration waited(Instant now) const { return look_at_ == Instant::max() ? Duration::zero() : now - since_; }

 private:
  Instant since_;
  Instant look_at_ = Instant::max();
  unsigned misses_ = 0;
};

}  // namespace hawser::backend::quic
