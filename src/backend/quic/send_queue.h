#pragma once

// SendQueue: what one stream sends, from the first byte that its peer has not acknowledged to the last that its user
// gave, and whether an end follows that.
//
// Thread rule: one thread. Lifetime: the pool outlives it. Memory: what is unacknowledged, in chunks; whoever appends
// bounds it by kUnackedMax.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/quic/byte_queue.h"
#include "backend/quic/connection_options.h"

namespace hawser::backend::quic {

/// What may go into one datagram: what lies in several chunks, too, for a short datagram would end a batch.
struct SendParts {
  std::array<ngtcp2_vec, 2 + kDatagramMost / ByteQueue::kChunk> parts;
  std::size_t count = 0, bytes = 0;
};

class SendQueue {
 public:
  static constexpr std::size_t kUnackedMax = 8u << 20;

  explicit SendQueue(ChunkPool& pool) : bytes_(pool) {}

  /// Copies them.
  void append(std::span<const std::byte> bytes) { bytes_.append(bytes); }
  /// Its user sends no more: an end follows the last byte.
  void finish() { is_ending_ = true; }
  /// Its user has dropped what was not acknowledged. Nothing more of it is sent.
  void abort();

  /// The next bytes to send, of so many chunks at most.
  SendParts unsent(std::size_t chunks_max) const;
  /// Whether the end goes with these.
  bool ends_with(const SendParts& parts) const { return is_ending_ && sent_ + parts.bytes == bytes_.size(); }
  /// So many of them went into a datagram; `is_last`: the end does, too, where no byte is left.
  void note_sent(std::size_t bytes, bool is_last);
  /// The peer has the first ones.
  void note_acknowledged(std::size_t bytes);

  /// Unacknowledged bytes, sent or not.
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  std::size_t sent() const { return sent_; }  ///< Of them.
  std::size_t unsent() const { return bytes_.size() - sent_; }
  bool has_unsent() const { return unsent() > 0 || (is_ending_ && !is_end_sent_); }
  bool is_ending() const { return is_ending_; }
  bool is_aborted() const { return is_aborted_; }
  /// The peer has it all, and the end is on its way where there is one.
  bool is_done() const { return empty() && (!is_ending_ || is_end_sent_); }

 private:
  ByteQueue bytes_;
  std::size_t sent_ = 0;
  bool is_ending_ = false, is_end_sent_ = false, is_aborted_ = false;
};

}  // namespace hawser::backend::quic
