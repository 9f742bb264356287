#pragma once

// ConnectionIds: the ids that an acceptor gives its connections, and what it says to a peer of a connection that it has
// forgotten (a stateless reset, RFC 9000, section 10.3).
//
// Half of an id is random, the other half a MAC over it. So without keeping anything an acceptor knows whether it has
// given an id: strangers get no answer. The key lives as long as the object: after a restart nobody is answered.
//
// Thread rule: const after construction.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/quic/ngtcp2_library.h"
#include "backend/quic/random_source.h"

namespace hawser::backend::quic {

/// Bytes of an id that an acceptor gives its connections.
inline constexpr std::size_t kIdBytes = 16;

class ConnectionIds {
 public:
  using Token = std::array<std::uint8_t, NGTCP2_STATELESS_RESET_TOKENLEN>;
  /// Bytes of an answer. It answers longer datagrams only, so two that forgot each other come to an end.
  static constexpr std::size_t kAnswerBytes = 43;

  /// Its key is made of `random`, and later the ids are.
  explicit ConnectionIds(RandomSource& random);

  ngtcp2_cid make() const;
  bool is_own(std::span<const std::uint8_t> id) const;
  /// By which the peer knows that the answer is not a stranger's.
  Token token(std::span<const std::uint8_t> id) const;
  /// Writes the answer to a datagram of a connection that nobody knows. Its size; 0: it gets none.
  std::size_t answer(const Ngtcp2& library, std::span<const std::byte> datagram, std::span<std::byte> to) const;

 private:
  void mac(std::uint8_t purpose, std::span<const std::uint8_t> bytes, std::span<std::uint8_t> to) const;

  RandomSource& random_;
  std::array<std::uint8_t, 32> key_;
};

}  // namespace hawser::backend::quic
