#pragma once

// SeededRandom: random numbers that follow from a seed, for a simulated agent's connections.
//
// Thread rule: one thread.

#include "backend/quic/random_source.h"
#include "base/rng.h"

namespace hawser::quicsim {

class SeededRandom final : public backend::quic::RandomSource {
 public:
  explicit SeededRandom(std::uint64_t seed) : rng_(seed) {}
  void fill(std::span<std::uint8_t> bytes) override {
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(rng_.u64() >> 56);
  }

 private:
  base::Rng rng_;
};

}  // namespace hawser::quicsim
