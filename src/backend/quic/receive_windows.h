#pragma once

// What a peer may send: ConnectionWindow for all streams of a connection, StreamWindow for one. They count, and say by
// how many bytes a window opens; their user tells ngtcp2.
//
// Thread rule: one thread. Values.

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hawser::backend::quic {

/// Once the peer is trusted, what came counts as taken while no more than `unread_max` is unread: so streams that
/// nobody reads hold no other one back. Until then it counts as taken once it is read.
class ConnectionWindow {
 public:
  explicit ConnectionWindow(std::uint64_t unread_max) : unread_max_(unread_max) {}

  /// The peer has proven who it is. Each returns the bytes by which the window opens.
  std::size_t trust() {
    if (is_trusted_) return 0;
    is_trusted_ = true;
    return pay(static_cast<std::size_t>(std::min<std::uint64_t>(owed_, unread_max_)));
  }
  std::size_t came(std::size_t bytes, bool is_bounded = true) {
    unread_ += bytes;
    if (is_trusted_ && (unread_ <= unread_max_ || !is_bounded)) return bytes;
    owed_ += bytes;
    return 0;
  }
  std::size_t taken(std::size_t bytes) {
    unread_ -= bytes;
    return pay(std::min(owed_, bytes));
  }

  bool is_trusted() const { return is_trusted_; }

 private:
  std::size_t pay(std::size_t bytes) {
    owed_ -= bytes;
    return bytes;
  }

  const std::uint64_t unread_max_;
  bool is_trusted_ = false;
  std::size_t unread_ = 0;  ///< What came and was not read,
  std::size_t owed_ = 0;    ///< and what of it still fills the window.
};

/// What was read makes room for as much, which the peer hears once that is worth a frame: half the window. Then its
/// window gets twice as wide, up to a bound. ngtcp2 can do that by itself. But 0.12 tells a peer of a wider window and
/// forgets it, where the frame does not fit into a datagram at once, and then ends the connection of a peer that makes
/// use of it.
class StreamWindow {
 public:
  explicit StreamWindow(std::uint64_t first) : size_(first) {}

  /// Bytes that the peer may send ahead of the reader.
  std::uint64_t size() const { return size_; }
  void read(std::size_t bytes) { credit_ += bytes; }
  bool is_worth_a_frame() const { return 2 * credit_ >= size_; }
  /// By how much the window opens now: what was read, and what it is wider.
  std::uint64_t widen(std::uint64_t size_max) {
    const std::uint64_t wider = std::min(size_, std::max(size_max, size_) - size_);
    size_ += wider;
    return settle() + wider;
  }
  /// What was read, and the peer does not know of; it stays as wide as it is.
  std::uint64_t settle() {
    const std::uint64_t credit = credit_;
    credit_ = 0;
    return credit;
  }

 private:
  std::uint64_t size_;
  std::uint64_t credit_ = 0;
};

}  // namespace hawser::backend::quic
