#pragma once

// Doorkeeper: what happens to the first datagram of somebody unknown, before anything is kept or computed for him.
//
// An opener that was given the card puts a preface (tls/preface.h) into the token of its first datagram. Without one it
// gets no answer, unless strangers may come in to show an identity. A Retry (RFC 9000, section 8.1.2) makes an opener
// prove that its address is its own: strangers always have to, others where many are about.
//
// Thread rule: one thread. Memory: fixed.

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include <hawser/time.h>

#include "backend/quic/ngtcp2_library.h"
#include "backend/quic/route.h"
#include "base/id128.h"
#include "tls/key_pair.h"

namespace hawser::backend::quic {

enum class Verdict : std::uint8_t { kIgnore, kRetry, kAccept };

class Doorkeeper {
 public:
  struct Rules {
    base::Id128 secret = {};    ///< The card's secret; zero: everybody may come in.
    tls::PublicKey key = {};    ///< In the agent's card.
    bool has_identity = false;  ///< Strangers may come in and show an identity.
  };
  Doorkeeper(const Ngtcp2& library, const Rules& rules);

  struct Judged {
    Verdict verdict = Verdict::kIgnore;
    std::optional<ngtcp2_cid> asked_id = {};  ///< See Connection::First.
    bool has_card = false;                    ///< It showed the card's secret, or somebody who copied its datagram.
  };
  /// `is_crowded`: many are about who have proven nothing.
  Judged judge(const ngtcp2_pkt_hd& first, const Route& route, bool is_crowded, Instant now);
  /// Writes a Retry into `room`; returns its size, 0: it cannot.
  std::size_t write_retry(const ngtcp2_pkt_hd& first, const Route& route, std::span<std::byte> room, Instant now);

  /// What an opener that has the card begins with.
  static std::array<std::byte, 64> token(const base::Id128& secret, const tls::PublicKey& acceptor);

 private:
  bool is_preface(std::span<const std::byte> token) const;

  const Ngtcp2& library_;
  const Rules rules_;
  std::array<std::uint8_t, 32> retry_secret_;
};

}  // namespace hawser::backend::quic
