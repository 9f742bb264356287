#pragma once

// RandomSource: where a connection's random numbers come from: ids, the secrets of ids and resets, and what ngtcp2 asks
// for. An agent's are the system's. The simulator has a seeded one.
//
// Thread rule: secure_random may be used by any thread, others by one. Lifetime: outlives all that were given it.

#include <cstdint>
#include <span>

namespace hawser::backend::quic {

class RandomSource {
 public:
  virtual ~RandomSource() = default;
  virtual void fill(std::span<std::uint8_t> bytes) = 0;
};

/// The system's, fit for secrets. libsodium must have been initialised.
RandomSource& secure_random();

}  // namespace hawser::backend::quic
