#include "backend/quic/doorkeeper.h"

#include <sodium.h>

#include <chrono>

#include "backend/quic/connection.h"
#include "tls/preface.h"

namespace hawser::backend::quic {
namespace {

/// So long an address stays proven.
constexpr Duration kRetryLife = std::chrono::seconds(10);

}  // namespace

Doorkeeper::Doorkeeper(const Ngtcp2& library, const Rules& rules) : library_(library), rules_(rules) {
  randombytes_buf(retry_secret_.data(), retry_secret_.size());
}

std::array<std::byte, 64> Doorkeeper::token(const base::Id128& secret, const tls::PublicKey& acceptor) {
  static_assert(tls::kPrefaceBytes == 64);
  return tls::make_preface(secret, acceptor);
}

bool Doorkeeper::is_preface(std::span<const std::byte> token) const {
  return token.size() == tls::kPrefaceBytes &&
         tls::is_preface(token.first<tls::kPrefaceBytes>(), rules_.secret, rules_.key);
}

Doorkeeper::Judged Doorkeeper::judge(const ngtcp2_pkt_hd& first, const Route& route, bool is_crowded, Instant now) {
  const std::span<const std::uint8_t> token = token_of(first);
  if (!token.empty() && token.front() == NGTCP2_CRYPTO_TOKEN_MAGIC_RETRY) {
    ngtcp2_cid asked = {};
    const int error =
        library_.crypto.verify_retry_token(&asked, token.data(), token.size(), retry_secret_.data(),
                                           retry_secret_.size(), first.version, route.remote.get(), route.remote.size,
                                           &first.dcid, static_cast<ngtcp2_duration>(kRetryLife.count()), stamp(now));
    return error == 0 ? Judged{Verdict::kAccept, asked} : Judged{};
  }
  if (!rules_.secret.is_zero() && is_preface(std::as_bytes(token))) {
    return {.verdict = is_crowded ? Verdict::kRetry : Verdict::kAccept, .has_card = true};
  }
  return {rules_.secret.is_zero() || rules_.has_identity ? Verdict::kRetry : Verdict::kIgnore};
}

std::size_t Doorkeeper::write_retry(const ngtcp2_pkt_hd& first, const Route& route, std::span<std::byte> room,
                                    Instant now) {
  ngtcp2_cid own = {};
  own.datalen = kIdBytes;
  randombytes_buf(own.data, own.datalen);
  std::array<std::uint8_t, NGTCP2_CRYPTO_MAX_RETRY_TOKENLEN> token;
  const ngtcp2_ssize size =
      library_.crypto.generate_retry_token(token.data(), retry_secret_.data(), retry_secret_.size(), first.version,
                                           route.remote.get(), route.remote.size, &own, &first.dcid, stamp(now));
  if (size < 0) return 0;
  const ngtcp2_ssize written =
      library_.crypto.write_retry(reinterpret_cast<std::uint8_t*>(room.data()), room.size(), first.version, &first.scid,
                                  &own, &first.dcid, token.data(), static_cast<std::size_t>(size));
  return written > 0 ? static_cast<std::size_t>(written) : 0;
}

}  // namespace hawser::backend::quic
