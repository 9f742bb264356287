#include "tls/secret_mac.h"

#include <sodium.h>

#include "base/bytes.h"

namespace hawser::tls {

SecretMac secret_mac(const base::Id128& secret, std::initializer_list<std::span<const std::byte>> parts) {
  std::array<std::byte, 16> key;
  static_assert(sizeof(key) >= crypto_generichash_KEYBYTES_MIN && sizeof(SecretMac) == crypto_generichash_BYTES);
  base::ByteWriter(std::span<std::byte>(key)).id(secret);
  SecretMac mac;
  crypto_generichash_state state;
  crypto_generichash_init(&state, reinterpret_cast<const unsigned char*>(key.data()), key.size(), mac.size());
  for (const std::span<const std::byte> part : parts) {
    crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(part.data()), part.size());
  }
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(mac.data()), mac.size());
  sodium_memzero(key.data(), key.size());
  sodium_memzero(&state, sizeof state);
  return mac;
}

}  // namespace hawser::tls
