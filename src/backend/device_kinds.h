#pragma once

// DeviceKinds: a set of kinds of memory. Backends say by it which memory their paths reach, and nothing outside of a
// backend knows why.
//
// Thread rule: a value.

#include <cstdint>
#include <initializer_list>

#include <hawser/memory.h>

namespace hawser::backend {

class DeviceKinds {
 public:
  constexpr DeviceKinds(std::initializer_list<DeviceKind> kinds) {
    for (const DeviceKind kind : kinds) add(kind);
  }
  constexpr void add(DeviceKind kind) { bits_ |= bit(kind); }
  constexpr bool has(DeviceKind kind) const { return (bits_ & bit(kind)) != 0; }
  friend constexpr bool operator==(DeviceKinds, DeviceKinds) = default;

 private:
  /// Kinds that came by a card may be numbers that nothing here knows: no set has them.
  static constexpr std::uint32_t bit(DeviceKind kind) {
    const auto number = static_cast<std::uint32_t>(kind);
    return number < 32 ? std::uint32_t{1} << number : 0;
  }

  std::uint32_t bits_ = 0;
};

}  // namespace hawser::backend
