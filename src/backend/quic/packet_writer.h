#pragma once

// PacketWriter: what the sending side of a connection asks of QUIC: datagrams, and how much may go. Ngtcp2Writer asks
// ngtcp2; tests of Sending have one without a connection.
//
// Thread rule: one thread.

#include <cstddef>
#include <cstdint>
#include <span>

#include <hawser/time.h>

#include "backend/quic/ngtcp2_library.h"
#include "backend/quic/route.h"

namespace hawser::backend::quic {

class PacketWriter {
 public:
  /// Bytes of a stream; of none (-1): what the connection has to say beside.
  struct Wanted {
    std::int64_t stream = -1;
    std::span<const ngtcp2_vec> parts = {};
    bool is_last = false;  ///< The stream's end follows them.
  };
  struct Written {
    ngtcp2_ssize size = 0;   ///< Bytes of the datagram. 0: nothing may go now. Below 0: ngtcp2's error.
    ngtcp2_ssize taken = 0;  ///< Bytes of the stream that are in it; -1: not even an end of no bytes.
    Route route = {};
  };

  virtual ~PacketWriter() = default;
  /// One datagram. The stream's bytes stay where they are until they are acknowledged: lost ones are sent again.
  virtual Written write(const Wanted& wanted, std::span<std::byte> room, Instant now) = 0;
  /// Bytes that may go, as far as congestion control, the peer's window and its window of one stream are concerned.
  virtual std::uint64_t congestion_left() const = 0;
  virtual std::uint64_t window_left() const = 0;
  virtual std::uint64_t stream_window_left(std::int64_t stream) const = 0;
  /// What may go at once where datagrams are paced, and that it went.
  virtual std::size_t burst_max() const = 0;
  virtual void note_burst(Instant now) = 0;
};

class Ngtcp2Writer final : public PacketWriter {
 public:
  explicit Ngtcp2Writer(const Ngtcp2& library) : library_(library) {}
  /// Before anything else is called; the connection outlives the calls.
  void attach(ngtcp2_conn* connection) { connection_ = connection; }

  Written write(const Wanted& wanted, std::span<std::byte> room, Instant now) override;
  std::uint64_t congestion_left() const override { return library_.conn_get_cwnd_left(connection_); }
  std::uint64_t window_left() const override { return library_.conn_get_max_data_left(connection_); }
  std::uint64_t stream_window_left(std::int64_t stream) const override {
    return library_.conn_get_max_stream_data_left(connection_, stream);
  }
  std::size_t burst_max() const override { return library_.conn_get_send_quantum(connection_); }
  void note_burst(Instant now) override { library_.conn_update_pkt_tx_time(connection_, stamp(now)); }

 private:
  const Ngtcp2& library_;
  ngtcp2_conn* connection_ = nullptr;
};

/// One of ngtcp2's addresses.
base::SocketAddress address_from(const ngtcp2_addr& address);

}  // namespace hawser::backend::quic
