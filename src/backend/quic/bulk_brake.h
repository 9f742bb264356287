#pragma once

// BulkBrake keeps little bulk under way while a connection over loopback writes small things. Bulk under way lies in
// the receiver's socket there, and a message waits behind all of it. Over a network a round trip's worth has to be
// under way.
//
// Thread rule: one thread.

#include <cstddef>

#include <hawser/time.h>

namespace hawser::backend::quic {

class BulkBrake {
 public:
  /// A write of so much is small. It is remembered for so long: a message that waited comes back within it.
  static constexpr std::size_t kSmallMost = 2048;
  static constexpr Duration kFor = std::chrono::milliseconds(3);
  /// Then so much is under way at most; some 50 us of a receiver's time.
  static constexpr std::size_t kUnderWayMost = 64 * 1024;

  explicit BulkBrake(bool is_on) : is_on_(is_on) {}

  /// `bulk_until`: the stream's own, at first Instant::min(). The end of its bulk is no message.
  void note_write(std::size_t bytes, Instant& bulk_until, Instant now) {
    if (bytes > kSmallMost) {
      bulk_until = now + kFor;
    } else if (now >= bulk_until) {
      small_until_ = now + kFor;
    }
  }
  /// Whether a write of `bytes` has to wait for acknowledgements, where `under_way` are not acknowledged.
  bool holds(std::size_t bytes, std::size_t under_way, Instant now) const {
    return is_on_ && bytes > kSmallMost && under_way >= kUnderWayMost && now < small_until_;
  }

 private:
  const bool is_on_;
  Instant small_until_ = Instant::min();
};

}  // namespace hawser::backend::quic
