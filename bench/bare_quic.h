#pragma once

// BareQuic: one end of a QUIC connection by ngtcp2 alone, to compare the backend with: a loop that spins over one
// socket, with GSO and GRO. It sends from where the bytes lie and drops what comes. There are no frames, no regions,
// no proofs and no heartbeats.
//
// Thread rule: one thread. Lifetime: the bytes that it sends outlive it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/quic/tls_end.h"
#include "backend/quic/udp_socket.h"

namespace hawser {

class BareQuic {
 public:
  /// An acceptor on a free port of 127.0.0.1.
  explicit BareQuic(std::size_t datagram);
  /// An opener, to that port.
  BareQuic(std::size_t datagram, std::uint16_t port);
  ~BareQuic();
  BareQuic(const BareQuic&) = delete;
  BareQuic& operator=(const BareQuic&) = delete;

  std::uint16_t port() const;
  bool is_up() const { return is_up_; }
  /// Opener's, once it is up: so many streams.
  void open_streams(std::size_t count);
  /// All of it on stream `number`.
  void send(std::size_t number, std::span<const std::byte> bytes);
  /// Bytes that came so far, on all streams.
  std::uint64_t came() const { return came_; }
  std::size_t streams() const { return outs_.size(); }
  void turn();

 private:
  struct Out {
    std::int64_t id = -1;
    std::vector<std::span<const std::byte>> parts;  ///< Not sent yet.
  };

  explicit BareQuic(std::size_t datagram, bool is_opener);
  void receive();
  void take(const backend::quic::Route& route, std::span<const std::byte> datagram);
  void accept(const backend::quic::Route& route, std::span<const std::byte> datagram);
  void write(Out* out);
  void flush();
  ngtcp2_callbacks callbacks() const;
  ngtcp2_settings settings() const;
  ngtcp2_transport_params params() const;

  const std::size_t datagram_;
  const bool is_opener_;
  std::shared_ptr<const backend::quic::TlsCredentials> credentials_;
  const backend::quic::Ngtcp2& library_;
  std::unique_ptr<backend::quic::UdpSocket> socket_;
  std::unique_ptr<backend::quic::HandshakeEnd> handshake_;
  backend::quic::Route route_;
  ngtcp2_conn* connection_ = nullptr;
  std::vector<Out> outs_;
  std::unique_ptr<std::byte[]> in_, out_;
  std::size_t used_ = 0, segment_ = 0;
  std::uint64_t came_ = 0;
  bool is_up_ = false;
};

}  // namespace hawser
