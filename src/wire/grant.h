#pragma once

// A grant as bytes: the right to one region of its owner, which its card need not list; and what a holder tells the
// owner of a grant for one transfer: that it has ended. That is the body of a session message Send on kGrantChannel;
// an agent that does not know it grants no credit there, and makes no grants.
//
// Grammar (little-endian; varint is LEB128, as short as can be; string is varint length and bytes):
//   grant  = magic:u32 "HWGR", version:u8 1, flags:u8, owner:16 (incarnation), [holder:16 (incarnation)], key:16,
//            index:varint, generation:varint, size:varint, lifetime:varint (ms since it was made; 0: until revoked),
//            [device kind:varint, ordinal:varint], owner:string, region:string, count:varint, extra*, checksum:u64 (of
//            all before it)
//   extra  = backend:string, bytes:string
//   flags: 1 read, 2 write, 4 for one transfer, 8 device (else host), 16 holder (else anybody)
//   used   = index:u32, generation:u32, key:16
//
// Thread rule: values and pure functions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hawser/memory.h>
#include <hawser/status.h>

#include "base/id128.h"

namespace hawser::wire {

inline constexpr std::uint32_t kGrantMagic = 0x52475748;  // "HWGR"
inline constexpr std::size_t kGrantSizeMax = 16 * 1024;
inline constexpr std::size_t kGrantExtrasMax = 64;                                   ///< Backends.
inline constexpr std::size_t kGrantExtraMax = 4096;                                  ///< Bytes of one.
inline constexpr std::uint64_t kGrantLifetimeMax = 1000ull * 3600 * 24 * 365 * 100;  ///< Milliseconds.
inline constexpr std::uint32_t kGrantChannel = 6;
inline constexpr std::size_t kGrantUsedSize = 4 + 4 + 16;

struct Grant {
  std::string owner_name;
  base::Id128 owner;   ///< Incarnation.
  base::Id128 holder;  ///< The only incarnation that may use it. Zero: any.
  base::Id128 key;
  std::uint32_t index = 0, generation = 0;
  std::uint64_t size = 0;
  std::uint64_t lifetime_ms = 0;  ///< On the owner's clock, from when it was made. 0: until it is revoked.
  Rights rights = Rights::kNone;
  bool single_use = false;
  Device device;
  std::string region_name;                                  ///< For people.
  std::vector<std::pair<std::string, std::string>> extras;  ///< What backends want, by their names.
};

struct GrantUsed {
  std::uint32_t index = 0, generation = 0;
  base::Id128 key;
};

/// kInvalid where it breaks a bound named above.
Result<std::string> encode(const Grant& grant);
/// kCorrupt tells what is wrong, kUnsupported that it is of a newer version.
Result<Grant> decode_grant(std::span<const std::byte> bytes);

using GrantUsedBuffer = std::array<std::byte, kGrantUsedSize>;
std::span<const std::byte> encode(const GrantUsed& used, GrantUsedBuffer& out);
Result<GrantUsed> decode_grant_used(std::span<const std::byte> bytes);

}  // namespace hawser::wire
