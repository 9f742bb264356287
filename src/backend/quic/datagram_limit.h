#pragma once

// DatagramLimit: how many bytes a datagram may have. Where large ones do not arrive though they did, as after a network
// has changed, or never did though somebody else brought a copy of a probe along, only what every network takes goes.
//
// Thread rule: one thread. A value.

#include <cstddef>

#include <hawser/time.h>

namespace hawser::backend::quic {

class DatagramLimit {
 public:
  /// What every network takes that QUIC works on (RFC 9000, section 14).
  static constexpr std::size_t kLeast = 1200;
  /// Large ones are tried again after this time (RFC 8899, section 5.1.1).
  static constexpr Duration kRaiseAfter = std::chrono::minutes(10);

  explicit DatagramLimit(std::size_t most) : most_(most) {}

  std::size_t bytes(Instant now) const { return now < raise_at_ && most_ > kLeast ? kLeast : most_; }
  /// Nothing is acknowledged, though the peer is heard: it may be the size. Where small ones do no better, it was not.
  void note_missed(Instant now) { raise_at_ = bytes(now) == most_ ? now + kRaiseAfter : Instant::min(); }
  /// Another route may take others.
  void note_moved() { raise_at_ = Instant::min(); }

 private:
  std::size_t most_;
  Instant raise_at_ = Instant::min();
};

}  // namespace hawser::backend::quic
