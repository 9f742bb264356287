#include "tls/key_pair.h"

#include <sodium.h>

namespace hawser::tls {

static_assert(KeyPair::kSeedBytes == crypto_sign_SEEDBYTES && sizeof(PublicKey) == crypto_sign_PUBLICKEYBYTES);

KeyPair KeyPair::make() {
  Seed seed;
  randombytes_buf(seed.data(), seed.size());
  KeyPair keys = from(seed);
  sodium_memzero(seed.data(), seed.size());
  return keys;
}

KeyPair KeyPair::from(const Seed& seed) {
  KeyPair keys;
  keys.seed_ = seed;
  std::array<unsigned char, crypto_sign_SECRETKEYBYTES> secret;
  crypto_sign_seed_keypair(reinterpret_cast<unsigned char*>(keys.public_key_.data()), secret.data(),
                           reinterpret_cast<const unsigned char*>(seed.data()));
  sodium_memzero(secret.data(), secret.size());
  return keys;
}

KeyPair::~KeyPair() { sodium_memzero(seed_.data(), seed_.size()); }

}  // namespace hawser::tls
