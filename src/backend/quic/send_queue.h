#pragma once

// SendQueue: what one stream sends, from the first byte that its peer has not acknowledged to the last that its user
// gave, and whether an end follows that. Bytes are copied, or lent: QUIC sends these from their user's memory, again
// where they were lost, until `released` covers them or the connection has ended. A reset of the stream does not change
// that.
//
// Thread rule: one thread. Lifetime: the pool outlives it. Memory: what is unacknowledged and not lent, in chunks; its
// user bounds it by kUnackedMax.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "backend/quic/byte_queue.h"
#include "backend/quic/connection_options.h"

namespace hawser::backend::quic {

/// What may go into one datagram: what lies in several pieces, too, for a short datagram would end a batch.
struct SendParts {
  std::array<ngtcp2_vec, 32> parts;
  std::size_t count = 0, bytes = 0;
};

class SendQueue {
 public:
  static constexpr std::size_t kUnackedMax = 8u << 20;
  /// Pieces of so many bytes are worth lending. Of shorter ones a datagram would have more than SendParts takes.
  static constexpr std::size_t kLendMin = 4096;

  explicit SendQueue(ChunkPool& pool) : copies_(pool) {}

  /// Copies them,
  void append(std::span<const std::byte> bytes);
  /// or refers to them.
  void lend(std::span<const std::byte> bytes);
  /// Its user sends no more: an end follows the last byte.
  void finish() { is_ending_ = true; }
  /// Its user has dropped what was not acknowledged. Nothing more of it is sent.
  void abort();

  /// The next bytes to send, of so many pieces at most.
  SendParts unsent(std::size_t pieces_max) const;
  /// Whether the end goes with these.
  bool ends_with(const SendParts& parts) const { return is_ending_ && sent_ + parts.bytes == size_; }
  /// So many of them went into a datagram; `is_last`: the end does, too, where no byte is left.
  void note_sent(std::size_t bytes, bool is_last);
  /// The peer has the first ones.
  void note_acknowledged(std::size_t bytes);

  /// Unacknowledged bytes, sent or not.
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t sent() const { return sent_; }  ///< Of them.
  std::size_t unsent() const { return size_ - sent_; }
  bool has_unsent() const { return unsent() > 0 || (is_ending_ && !is_end_sent_); }
  bool is_ending() const { return is_ending_; }
  bool is_aborted() const { return is_aborted_; }
  /// The peer has it all, and the end is on its way where there is one.
  bool is_done() const { return empty() && (!is_ending_ || is_end_sent_); }
  /// So many bytes, from the first that was ever given, lie in no memory but its own, or are acknowledged.
  std::uint64_t released() const;
  std::uint64_t given() const { return acknowledged_ + size_; }
  bool refers_to_user() const { return lent_ > 0; }

 private:
  /// Bytes that lie together; null: the next ones of copies_.
  struct Piece {
    const std::byte* lent = nullptr;
    std::size_t size = 0;
  };

  std::deque<Piece> pieces_;  ///< No two that are copied follow each other.
  ByteQueue copies_;
  std::size_t size_ = 0, sent_ = 0, lent_ = 0;
  std::size_t at_piece_ = 0, at_byte_ = 0;  ///< Where the first unsent byte is,
  std::size_t at_copied_ = 0;               ///< and how many bytes of copies_ come before it.
  std::uint64_t acknowledged_ = 0;
  bool is_ending_ = false, is_end_sent_ = false, is_aborted_ = false;
};

}  // namespace hawser::backend::quic
