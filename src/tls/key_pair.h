#pragma once

// KeyPair: the Ed25519 keys of one agent's incarnation. The card carries the public key; the private one never leaves.
//
// Thread rule: const after construction. The destructor wipes the secret.

#include <array>
#include <cstddef>
#include <span>

namespace hawser::tls {

using PublicKey = std::array<std::byte, 32>;

class KeyPair {
 public:
  static constexpr std::size_t kSeedBytes = 32;
  using Seed = std::array<std::byte, kSeedBytes>;

  /// From the system's random numbers. libsodium must have been initialised (sodium_init), as for all of this class.
  static KeyPair make();
  /// The same keys from the same seed: for runs that can be repeated.
  static KeyPair from(const Seed& seed);

  KeyPair(const KeyPair& other) = default;
  KeyPair& operator=(const KeyPair& other) = default;
  ~KeyPair();

  const PublicKey& public_key() const { return public_key_; }
  /// The private key, as RFC 8032 defines it: 32 random bytes. Never log it, never send it.
  const Seed& seed() const { return seed_; }

 private:
  KeyPair() = default;

  PublicKey public_key_{};
  Seed seed_{};
};

}  // namespace hawser::tls
