#pragma once

// Id128: 128 random bits that name one thing for ever (an incarnation, a region's key, a session's token).
//
// Thread rule: a value; random_id128() may be called from any thread.
// The zero id means "none" and is never drawn.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hawser::base {

struct Id128 {
  std::uint64_t hi = 0;
  std::uint64_t lo = 0;

  constexpr bool is_zero() const { return (hi | lo) == 0; }

  /// Takes the same time wherever the difference lies, because region keys are compared with what a peer sent.
  friend constexpr bool operator==(const Id128& a, const Id128& b) { return ((a.hi ^ b.hi) | (a.lo ^ b.lo)) == 0; }
  friend constexpr std::strong_ordering operator<=>(const Id128& a, const Id128& b) {
    if (a.hi != b.hi) return a.hi <=> b.hi;
    return a.lo <=> b.lo;
  }
};

/// Drawn from the kernel's generator; never zero.
Id128 random_id128();

/// 32 lower-case hexadecimal digits, the highest first.
std::string to_hex(const Id128& id);
/// Exactly 32 hexadecimal digits of either case, else nothing.
std::optional<Id128> id128_from_hex(std::string_view text);

}  // namespace hawser::base

template <>
struct std::hash<hawser::base::Id128> {
  // Mixed, because ids that a peer chose need not be random. A table keyed by foreign ids must be bounded all the same.
  std::size_t operator()(const hawser::base::Id128& id) const noexcept {
    std::uint64_t h = (id.hi ^ 0x9e3779b97f4a7c15U) * 0xbf58476d1ce4e5b9U;
    h = (h ^ (h >> 32) ^ id.lo) * 0x94d049bb133111ebU;
    return static_cast<std::size_t>(h ^ (h >> 29));
  }
};
