#pragma once

// Flow: one stream of a connection, as its connection and its user see it.
//
// Thread rule: one thread. Lifetime: the connection's, until ngtcp2 and its user are done with it.

#include <cstddef>
#include <cstdint>

#include <hawser/status.h>
#include <hawser/time.h>

#include "backend/quic/ack_watch.h"
#include "backend/quic/byte_queue.h"
#include "backend/quic/receive_windows.h"
#include "backend/quic/send_queue.h"

namespace hawser::backend::quic {

struct Flow {
  Flow(ChunkPool& pool, std::uint64_t first_window) : out(pool), in(pool), window(first_window) {}

  std::int64_t id = -1;
  SendQueue out;
  ByteQueue in;
  StreamWindow window;     ///< What the peer may send ahead of the reader.
  std::size_t placed = 0;  ///< Bytes that its user took as they came, and was not told of yet.
  bool has_ended = false;  ///< The peer sends no more.
  bool is_left = false;    ///< Its user is gone.
  bool is_over = false;    ///< ngtcp2 knows it no more.
  AckWatch watch;
  Instant bulk_until = Instant::min();  ///< See BulkBrake.
  bool wants_room = false;
  bool is_readable = false;  ///< News for its user.
  bool is_writable = false;
  bool is_released = false;  ///< Bytes that were lent are acknowledged.
  Status reset;              ///< Why nothing moves any more; good: no reason.
  void* user = nullptr;

  /// Something may come back for what it sent: an acknowledgement.
  bool is_awaited() const { return out.sent() > 0 && !out.is_aborted() && !is_over && reset.ok(); }
  /// Bytes that the peer has not acknowledged, and still may.
  std::size_t under_way() const { return out.is_aborted() || !reset.ok() || is_over ? 0 : out.size(); }
  /// The peer has all that it wants.
  bool is_flushed() const { return !reset.ok() || out.empty(); }
  bool is_delivered() const { return !reset.ok() || out.is_done(); }
};

}  // namespace hawser::backend::quic
