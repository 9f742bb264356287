#include "backend/quic/connection_ids.h"

#include <sodium.h>

#include <algorithm>

namespace hawser::backend::quic {
namespace {

constexpr std::size_t kRandomBytes = kIdBytes / 2;
constexpr std::uint8_t kOfIds = 1, kOfTokens = 2;
/// The highest bit of a datagram's first byte: it belongs to a handshake (RFC 9000, section 17.2).
constexpr std::uint8_t kLongHeader = 0x80;

}  // namespace

ConnectionIds::ConnectionIds(RandomSource& random) : random_(random) { random_.fill(key_); }

void ConnectionIds::mac(std::uint8_t purpose, std::span<const std::uint8_t> bytes, std::span<std::uint8_t> to) const {
  std::array<std::uint8_t, crypto_generichash_BYTES> whole;
  crypto_generichash_state state;
  crypto_generichash_init(&state, key_.data(), key_.size(), whole.size());
  crypto_generichash_update(&state, &purpose, 1);
  crypto_generichash_update(&state, bytes.data(), bytes.size());
  crypto_generichash_final(&state, whole.data(), whole.size());
  std::copy_n(whole.begin(), to.size(), to.begin());
}

ngtcp2_cid ConnectionIds::make() const {
  ngtcp2_cid id = {};
  id.datalen = kIdBytes;
  const std::span<std::uint8_t> bytes(id.data, kIdBytes);
  random_.fill(bytes.first(kRandomBytes));
  mac(kOfIds, bytes.first(kRandomBytes), bytes.subspan(kRandomBytes));
  return id;
}

bool ConnectionIds::is_own(std::span<const std::uint8_t> id) const {
  if (id.size() != kIdBytes) return false;
  std::array<std::uint8_t, kIdBytes - kRandomBytes> right;
  mac(kOfIds, id.first(kRandomBytes), right);
  return sodium_memcmp(right.data(), id.data() + kRandomBytes, right.size()) == 0;
}

ConnectionIds::Token ConnectionIds::token(std::span<const std::uint8_t> id) const {
  Token token;
  mac(kOfTokens, id, token);
  return token;
}

std::size_t ConnectionIds::answer(const Ngtcp2& library, std::span<const std::byte> datagram,
                                  std::span<std::byte> to) const {
  if (datagram.size() <= kAnswerBytes || to.size() < kAnswerBytes) return 0;
  const std::span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(datagram.data()), datagram.size());
  const std::span<const std::uint8_t> id = bytes.subspan(1, kIdBytes);
  if ((bytes.front() & kLongHeader) != 0 || !is_own(id)) return 0;
  std::array<std::uint8_t, kAnswerBytes - NGTCP2_STATELESS_RESET_TOKENLEN> noise;
  random_.fill(noise);
  const ngtcp2_ssize size = library.pkt_write_stateless_reset(reinterpret_cast<std::uint8_t*>(to.data()), kAnswerBytes,
                                                              token(id).data(), noise.data(), noise.size());
  return size > 0 ? static_cast<std::size_t>(size) : 0;
}

}  // namespace hawser::backend::quic
