#pragma once

// PlainHandshakes: a handshake for simulated QUIC connections. Its messages go the way of TLS 1.3's: hello, hello and
// proof of the acceptor, proof of the opener; transport parameters and certificates are in them, and keys come at the
// same steps. Nothing is secret: a packet is its plain bytes and 16 bytes that depend on its key, number, header and
// payload. So a packet that was changed, cut or put together wrongly is refused as a real one would be.
//
// Thread rule: one thread. Lifetime: outlives the connections.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backend/quic/connection.h"

namespace hawser::quicsim {

inline constexpr std::size_t kPlainTagBytes = 16;

class PlainHandshakes final : public backend::quic::Handshakes {
 public:
  /// `certificate`: bytes that each end shows as such, so that a handshake takes several datagrams where it is long.
  PlainHandshakes(const backend::quic::Ngtcp2& library, backend::quic::RandomSource& random, const tls::PublicKey& key,
                  std::size_t certificate)
      : library_(library), random_(random), key_(key), certificate_(certificate) {}

  Result<std::unique_ptr<backend::quic::HandshakeEnd>> open_end(tls::End end) const override;
  const char* alert_name(std::uint8_t alert) const override;

  const backend::quic::Ngtcp2& library() const { return library_; }
  backend::quic::RandomSource& source() const { return random_; }
  const tls::PublicKey& key() const { return key_; }
  std::size_t certificate() const { return certificate_; }

  /// A Retry for the opener's first datagram, as an acceptor writes it that wants to see its address proven: the opener
  /// comes back with `token`, to `own`. Its size; 0: there is no room.
  std::size_t write_retry(const ngtcp2_pkt_hd& first, const ngtcp2_cid& own, std::span<const std::uint8_t> token,
                          std::span<std::byte> room) const;

 private:
  const backend::quic::Ngtcp2& library_;
  backend::quic::RandomSource& random_;
  const tls::PublicKey key_;
  const std::size_t certificate_;
};

/// Both ends of a connection of PlainHandshakes take new keys. False: not yet, or not now.
bool update_keys(const backend::quic::Connection& connection, Instant now);

}  // namespace hawser::quicsim
