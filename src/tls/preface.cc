#include "tls/preface.h"

#include <sodium.h>

#include <algorithm>

#include "tls/secret_mac.h"

namespace hawser::tls {
namespace {

constexpr std::array<std::byte, 8> kHead = {std::byte{'T'}, std::byte{'L'}, std::byte{'S'}, std::byte{'H'},
                                            std::byte{1},   std::byte{0},   std::byte{0},   std::byte{0}};
constexpr std::size_t kNonceAt = kHead.size();
constexpr std::size_t kMacAt = kNonceAt + 16;

}  // namespace

Preface make_preface(const base::Id128& secret, const PublicKey& acceptor) {
  Preface preface{};
  std::ranges::copy(kHead, preface.begin());
  randombytes_buf(preface.data() + kNonceAt, kMacAt - kNonceAt);
  std::ranges::copy(secret_mac(secret, {std::span(preface).first<kMacAt>(), acceptor}), preface.begin() + kMacAt);
  return preface;
}

bool is_preface(std::span<const std::byte, kPrefaceBytes> bytes, const base::Id128& secret, const PublicKey& acceptor) {
  if (!std::equal(kHead.begin(), kHead.end(), bytes.begin())) return false;
  const SecretMac mac = secret_mac(secret, {bytes.first<kMacAt>(), acceptor});
  return sodium_memcmp(mac.data(), bytes.data() + kMacAt, mac.size()) == 0;
}

}  // namespace hawser::tls
