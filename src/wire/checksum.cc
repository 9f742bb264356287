#include "wire/checksum.h"

#include <bit>

#include "base/bytes.h"

namespace hawser::wire {
namespace {

constexpr std::uint64_t kPrime = 0x9e3779b97f4a7c15U;  // odd, so that multiplying loses nothing

// A multiplication carries only upward; the rotation brings the high bits back down, so that flips in the top bits of
// neighbouring words do not cancel.
constexpr std::uint64_t mix(std::uint64_t state, std::uint64_t word) { return std::rotl((state ^ word) * kPrime, 29); }

}  // namespace

std::uint64_t checksum(std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t state = 0x4861777365725343U ^ left;
  for (; left >= sizeof(std::uint64_t); left -= sizeof(std::uint64_t), at += sizeof(std::uint64_t)) {
    state = mix(state, base::load_little_endian<std::uint64_t>(at));
  }
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < left; ++i) last |= std::to_integer<std::uint64_t>(at[i]) << (8 * i);
  state = mix(state, last);
  return state ^ (state >> 32);
}

}  // namespace hawser::wire
