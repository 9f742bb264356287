#pragma once

// BulkBrake keeps little bulk under way while a connection over loopback writes small things. Bulk under way lies in
// the receiver's socket there, and a message waits behind all of it. Over a network a round trip's worth has to be
// under way.
//
// Where many small things go, messages wait behind little bulk. The fewer they are the more of its rate bulk keeps, for
// both ends then work at the same time.
//
// Thread rule: one thread.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include <hawser/time.h>

namespace hawser::backend::quic {

class BulkBrake {
 public:
  /// A write of so much is small. It is remembered for so long: a message that waited comes back within it. Then
  /// another one is not expected at once, and for so long not at all.
  static constexpr std::size_t kSmallMost = 2048;
  static constexpr Duration kFor = std::chrono::milliseconds(3);
  static constexpr Duration kSeldomFor = std::chrono::milliseconds(30);
  /// Many are kMany, of which one is forgotten in each kForgetOne.
  static constexpr int kMany = 4;
  static constexpr Duration kForgetOne = std::chrono::microseconds(400);
  /// So much is under way at most: some 50 us of a receiver's time beside many small things, some 100 beside few.
  static constexpr std::size_t kBesideMany = 64 * 1024;
  static constexpr std::size_t kBesideFew = 128 * 1024;
  static constexpr std::size_t kBesideSeldom = 160 * 1024;

  explicit BulkBrake(bool is_on) : is_on_(is_on) {}

  /// `bulk_until`: the stream's own, at first Instant::min(). The end of its bulk is no message.
  void note_write(std::size_t bytes, Instant& bulk_until, Instant now) {
    if (bytes > kSmallMost) {
      bulk_until = now + kFor;
    } else if (now >= bulk_until) {
      small_at_ = now;
      counted_until_ = std::min(std::max(counted_until_, now) + kForgetOne, now + kMany * kForgetOne);
      if (counted_until_ - now > (kMany - 1) * kForgetOne) many_until_ = now + kFor;
    }
  }
  /// How much of a write of `bytes` may go now, where `under_way` are not acknowledged.
  std::size_t room(std::size_t bytes, std::size_t under_way, Instant now) const {
    if (!is_on_ || bytes <= kSmallMost || now >= small_at_ + kSeldomFor) return SIZE_MAX;
    const std::size_t most = now < many_until_ ? kBesideMany : now < small_at_ + kFor ? kBesideFew : kBesideSeldom;
    return most - std::min(most, under_way);
  }

 private:
  const bool is_on_;
  Instant small_at_ = Instant::min(), many_until_ = Instant::min();
  Instant counted_until_ = Instant::min();  ///< When the last small write is forgotten.
};

}  // namespace hawser::backend::quic
