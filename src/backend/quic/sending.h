#pragma once

// Sending: the sending side of a connection. It takes bytes for its streams, makes datagrams of them in their order,
// hands these to the kernel in batches, and knows what the peer has acknowledged.
//
// Small things go before bulk. A write takes no more than may go, but for kSmallUnsent. What the network or the peer
// holds back goes with a later `settle`.
//
// Thread rule: one thread. Lifetime: flows, writer and sender outlive it. Memory: for each stream what is
// unacknowledged (SendQueue::kUnackedMax).

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <hawser/time.h>

#include "backend/quic/bulk_brake.h"
#include "backend/quic/connection_options.h"
#include "backend/quic/datagram_limit.h"
#include "backend/quic/flow.h"
#include "backend/quic/packet_batch.h"
#include "backend/quic/packet_writer.h"
#include "backend/quic/qlog.h"
#include "backend/quic/route.h"

namespace hawser::backend::quic {

class Sending {
 public:
  using Flows = std::vector<std::unique_ptr<Flow>>;

  /// `write` copies so many bytes of its caller's before it makes packets of them.
  static constexpr std::size_t kTakeAtOnce = 256 * 1024;
  /// `write` copies so many bytes even while the network takes nothing. A stream that has no more than that to send
  /// goes before bulk once there is room, so a message does not wait for the bulk that `write` took before.
  static constexpr std::size_t kSmallUnsent = 16 * 1024;

  Sending(const Flows& flows, PacketWriter& writer, PacketSender& sender, PacketBatch::Buffer& spare,
          const ConnectionOptions& options);

  /// Each datagram is written there; null: to none.
  void set_log(Qlog* log) { log_ = log; }

  struct Taken {
    std::size_t bytes = 0;
    int error = 0;         ///< One of ngtcp2's: the connection ends.
    bool is_held = false;  ///< Bulk waits for messages. Nothing was tried, and so nothing is to be settled.
  };
  /// Takes a prefix of `parts` and sends what may go. 0 bytes: there is no room, and `tell_room` will tell. Where the
  /// options say so, large parts are lent (SendQueue).
  Taken write(Flow& flow, std::span<const iovec> parts, Instant now);
  /// Sends what there is, acknowledgements, too. Not 0: one of ngtcp2's errors.
  int settle(Instant now);
  /// Marks streams that wait for room, and have it, as writable.
  void tell_room();
  /// One more datagram that `write` writes into the room that it gets; it returns its size, or 0.
  template <typename Write>
  void send_last(const Route& route, std::size_t bytes_max, Write write);
  /// Hands to the kernel what waits. False: it still does.
  bool flush() { return batch_.flush(); }
  bool is_blocked() const { return batch_.is_blocked(); }

  /// The peer has so many more bytes of that stream.
  void note_acknowledged(std::int64_t stream, std::size_t bytes);
  /// Looks at what is under way, once the handshake is confirmed. `timeout`: QUIC's probe timeout.
  void watch(Instant now, Duration timeout);
  /// A datagram came. Nothing: streams are acknowledged, or it is too early to tell. Else smaller datagrams, or full
  /// ones again, are tried, and this is how long the slowest stream has waited.
  std::optional<Duration> note_heard(Instant now, Duration timeout);
  /// It sends by another route.
  void note_moved() { limit_.note_moved(); }

  /// What streams have taken and their peer has not acknowledged.
  std::size_t under_way() const;
  /// What of it was not sent yet.
  std::size_t unsent() const;
  /// What was to be delivered is acknowledged, or never will be.
  bool is_delivered() const;

 private:
  int pump(Flow* flow, Instant now);
  PacketWriter::Written write_one(Flow* flow, std::span<std::byte> room, Instant now);
  bool has_room(const Flow& flow) const;

  const Flows& flows_;
  PacketWriter& writer_;
  PacketBatch batch_;
  DatagramLimit limit_;
  BulkBrake brake_;
  const std::size_t datagram_max_;
  const bool is_paced_;
  const std::size_t lend_min_;
  Qlog* log_ = nullptr;
};

template <typename Write>
void Sending::send_last(const Route& route, std::size_t bytes_max, Write write) {
  const std::span<std::byte> room = batch_.room(bytes_max);
  if (room.empty()) return;
  const std::size_t size = write(room);
  if (size > 0) batch_.add(route, size);
  if (size > 0 && log_ != nullptr) log_->sent(size);
  static_cast<void>(batch_.flush());
}

}  // namespace hawser::backend::quic
