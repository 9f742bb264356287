#pragma once

// Digest: a number made of several, by which ranks find out whether they mean the same. No stranger chooses what goes
// in, so it need not resist one.
//
// Thread rule: one thread.

#include <bit>
#include <cstdint>
#include <cstring>

#include <hawser/peer.h>

namespace hawser::runtime {

class Digest {
 public:
  void add(std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9E3779B97F4A7C15ULL;
    hash_ ^= hash_ >> 29;
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0x243F6A8885A308D3ULL;
};

/// The number of the world whose rank 0 is this one.
inline std::uint64_t nonce_of(const Incarnation& incarnation) {
  std::uint64_t halves[2] = {};
  std::memcpy(halves, incarnation.bytes.data(), sizeof halves);
  return halves[0] ^ std::rotl(halves[1], 32);
}

}  // namespace hawser::runtime
