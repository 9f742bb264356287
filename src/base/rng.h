#pragma once

// Rng: a seeded generator (xoshiro256**) that gives the same numbers on every platform and with every standard
// library, for the simulator, jitter and sampling. Not for keys or tokens: those are random_id128().
//
// Thread rule: one thread at a time; give each its own by fork().

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/check.h"

namespace hawser::base {

class Rng {
 public:
  explicit Rng(std::uint64_t seed) {
    for (std::uint64_t& word : state_) word = split_mix(seed);
  }

  std::uint64_t u64() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t carry = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= carry;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }
  /// Even in [0, bound); `bound` > 0. Lemire's method: the loop runs again with probability below bound / 2^64.
  std::uint64_t below(std::uint64_t bound) {
    HAWSER_ASSERT(bound > 0, "below(0) has no answer");
    Wide product = Wide{u64()} * bound;
    if (static_cast<std::uint64_t>(product) < bound) {
      const std::uint64_t threshold = (0 - bound) % bound;
      while (static_cast<std::uint64_t>(product) < threshold) product = Wide{u64()} * bound;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }
  /// Even in [first, last], both included.
  std::int64_t range(std::int64_t first, std::int64_t last) {
    HAWSER_ASSERT(first <= last, "an empty range has no answer");
    const std::uint64_t span = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first) + 1;
    const std::uint64_t step = span == 0 ? u64() : below(span);  // 0: all of 64 bits
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(first) + step);
  }
  /// In [0, 1), a multiple of 2^-53.
  double unit() { return static_cast<double>(u64() >> 11) * 0x1.0p-53; }
  bool chance(double probability) { return unit() < probability; }
  /// An independent generator that depends on the state of this one.
  Rng fork() { return Rng(u64()); }

  /// Any container with size() and operator[].
  template <typename Sequence>
  void shuffle(Sequence& items) {
    for (std::size_t left = items.size(); left > 1; --left) {
      using std::swap;
      swap(items[left - 1], items[static_cast<std::size_t>(below(left))]);
    }
  }

 private:
  __extension__ typedef unsigned __int128 Wide;

  static std::uint64_t split_mix(std::uint64_t& seed) {
    std::uint64_t z = (seed += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

  std::array<std::uint64_t, 4> state_;
};

}  // namespace hawser::base
