#include "tls/preface.h"

#include <sodium.h>

#include <algorithm>

namespace hawser::tls {
namespace {

constexpr std::array<std::byte, 8> kHead = {std::byte{'T'}, std::byte{'L'}, std::byte{'S'}, std::byte{'H'},
                                            std::byte{1},   std::byte{0},   std::byte{0},   std::byte{0}};
constexpr std::size_t kNonceAt = kHead.size();
constexpr std::size_t kMacAt = kNonceAt + 16;
constexpr std::size_t kMacBytes = 32;

using Mac = std::array<std::byte, kMacBytes>;

const unsigned char* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

Mac mac_of(std::span<const std::byte> beginning, const base::Id128& secret, const PublicKey& acceptor) {
  std::array<unsigned char, 16> key;
  for (std::size_t i = 0; i < 8; ++i) {
    key[i] = static_cast<unsigned char>(secret.lo >> (8 * i));
    key[8 + i] = static_cast<unsigned char>(secret.hi >> (8 * i));
  }
  Mac mac;
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.data(), key.size(), mac.size());
  crypto_generichash_update(&state, raw(beginning), beginning.size());
  crypto_generichash_update(&state, raw(acceptor), acceptor.size());
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(mac.data()), mac.size());
  sodium_memzero(key.data(), key.size());
  sodium_memzero(&state, sizeof state);
  return mac;
}

}  // namespace

Preface make_preface(const base::Id128& secret, const PublicKey& acceptor) {
  Preface preface{};
  std::ranges::copy(kHead, preface.begin());
  randombytes_buf(preface.data() + kNonceAt, kMacAt - kNonceAt);
  std::ranges::copy(mac_of(std::span(preface).first<kMacAt>(), secret, acceptor), preface.begin() + kMacAt);
  return preface;
}

bool is_preface(std::span<const std::byte, kPrefaceBytes> bytes, const base::Id128& secret, const PublicKey& acceptor) {
  if (!std::equal(kHead.begin(), kHead.end(), bytes.begin())) return false;
  const Mac mac = mac_of(bytes.first<kMacAt>(), secret, acceptor);
  return sodium_memcmp(mac.data(), bytes.data() + kMacAt, mac.size()) == 0;
}

}  // namespace hawser::tls
