#pragma once

// Flow: one stream of a connection, as its connection and its user see it.
//
// Thread rule: one thread. Lifetime: the connection's, until ngtcp2 and its user are done with it.

#include <array>
#include <cstddef>
#include <cstdint>

#include <hawser/status.h>
#include <hawser/time.h>

#include "backend/quic/ack_watch.h"
#include "backend/quic/byte_queue.h"
#include "backend/quic/connection_options.h"
#include "backend/quic/receive_windows.h"

namespace hawser::backend::quic {

struct Flow {
  static constexpr std::size_t kUnackedMax = 8u << 20;

  Flow(ChunkPool& pool, std::uint64_t first_window) : out(pool), in(pool), window(first_window) {}

  std::int64_t id = -1;
  ByteQueue out;             ///< The peer has not acknowledged these bytes.
  std::size_t out_sent = 0;  ///< So much of it was sent.
  ByteQueue in;
  StreamWindow window;     ///< What the peer may send ahead of the reader.
  bool is_ending = false;  ///< Its user sends no more: an end follows the last byte.
  bool is_end_sent = false;
  std::size_t placed = 0;   ///< Bytes that its user took as they came, and was not told of yet.
  bool has_ended = false;   ///< The peer sends no more.
  bool is_left = false;     ///< Its user is gone.
  bool is_aborted = false;  ///< Its user has dropped what was not acknowledged.
  bool is_over = false;     ///< ngtcp2 knows it no more.
  AckWatch watch;
  Instant bulk_until = Instant::min();  ///< See BulkBrake.
  bool wants_room = false;
  bool is_readable = false;  ///< News for its user.
  bool is_writable = false;
  Status reset;  ///< Why nothing moves any more; good: no reason.
  void* user = nullptr;

  bool has_unsent() const { return out_sent < out.size() || (is_ending && !is_end_sent); }
  bool is_small(std::size_t most) const { return out.size() - out_sent <= most; }
  /// Something may come back for what it sent: an acknowledgement.
  bool is_awaited() const { return out_sent > 0 && !is_aborted && !is_over && reset.ok(); }
  /// Bytes that the peer has not acknowledged, and still may.
  std::size_t under_way() const { return is_aborted || !reset.ok() || is_over ? 0 : out.size(); }
  /// The peer has all that it wants.
  bool is_flushed() const { return !reset.ok() || out.empty(); }
  bool is_delivered() const { return !reset.ok() || (out.empty() && (!is_ending || is_end_sent)); }
};

/// What of a flow may go into one datagram: what lies in several chunks, too, for a short datagram would end a batch.
struct FlowParts {
  std::array<ngtcp2_vec, 2 + kDatagramMost / ByteQueue::kChunk> parts;
  std::size_t count = 0, bytes = 0;
};
FlowParts unsent_of(const Flow& flow, std::size_t chunks_max);

}  // namespace hawser::backend::quic
