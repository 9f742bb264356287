#pragma once

// HandshakeEnd: one end of the handshake inside of a QUIC connection: what makes its keys, protects its packets and
// knows who the peer is. TlsEnd is the one of agents; the simulator has its own (quicsim/plain_handshake.h).
//
// Thread rule: one thread. Lifetime: the ngtcp2 connection that it was attached to is deleted before it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <hawser/status.h>

#include "backend/quic/ngtcp2_library.h"
#include "tls/key_pair.h"
#include "tls/session.h"

namespace hawser::backend::quic {

class HandshakeEnd {
 public:
  virtual ~HandshakeEnd() = default;

  /// Those callbacks of ngtcp2 that make keys and protect packets.
  virtual void add_callbacks(ngtcp2_callbacks& table) const = 0;
  virtual void attach(ngtcp2_conn* connection) = 0;
  /// Once the handshake is through. kDenied: the peer has shown no key that counts.
  virtual Status learn() = 0;

  /// The key that the peer proved to have.
  virtual const tls::PublicKey& peer_key() const = 0;
  /// A number that only the two ends of this connection know, another one for each stream.
  virtual Result<std::array<std::byte, 32>> binding(std::int64_t stream) const = 0;
  /// For people: version and algorithms.
  virtual std::string describe() const = 0;
};

/// What opens the ends of an agent's connections.
class Handshakes {
 public:
  virtual ~Handshakes() = default;
  virtual Result<std::unique_ptr<HandshakeEnd>> open_end(tls::End end) const = 0;
  /// What an alert of TLS is called, for people; null: nobody knows it.
  virtual const char* alert_name(std::uint8_t alert) const = 0;
};

}  // namespace hawser::backend::quic
