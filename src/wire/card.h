#pragma once

// The card: what peers must know of an agent, as versioned bytes. A full card tells all, a partial one some of the
// regions, a delta what changed since a revision.
//
// Grammar (little-endian; varint is LEB128, as short as can be; string is varint length and bytes):
//   card     = magic:u32 "HWCD", version_min:u16, version_max:u16, size:u32 (of the sections), section*, checksum:u64
//              (of all before it). This frame is fixed for ever; the form of the sections is that of version_min.
//   section  = kind:u16, size:u32, bytes. Each kind at most once, in any order. A kind that is not known is skipped,
//              unless its bit 15 says that the card means nothing without it.
//   head     (0x8001) = kind:u8, flags:u8 (1 driven), incarnation:16, revision:u64, base_revision:u64,
//              public_key:32, born:u64, admission:16, name:string
//   backends (0x8002) = count:varint, (name:string, address:string)*. All of them, in a delta too.
//   regions  (0x8003) = count:varint, region*, by ascending index
//   region   = index:varint (minus the index before it, minus 1), generation:varint, flags:u8, size:varint, key:16,
//              [device: kind:varint, ordinal:varint], [name size:varint],
//              [extras: count:varint, (backend:varint, size:varint)*]
//              flags: 1 read, 2 write, 4 named, 8 device (else host), 16 extras
//   text     (0x8004) = for each region in turn: its name, then its extras' bytes, with nothing between
//   removed  (0x8005) = count:varint, (index:varint (minus the index before it), generation:varint)*, ascending
//
// Thread rule: values and pure functions. Lifetime: region names and extras are views; those of a decoded card live in
// a buffer that the card owns (moving the card keeps them), those of a card to encode belong to its maker.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/memory.h>
#include <hawser/status.h>

#include "base/id128.h"
#include "wire/hello.h"
#include "wire/limits.h"

namespace hawser::wire {

inline constexpr std::uint32_t kCardMagic = 0x44435748;  // "HWCD"
inline constexpr std::size_t kCardSizeMax = 256u << 20;
inline constexpr std::size_t kCardRegionsMax = 1u << 20;  ///< Indices are below it too.
inline constexpr std::size_t kCardRemovedMax = 1u << 20;
inline constexpr std::size_t kCardExtrasMax = 1u << 22;  ///< Over all regions.
inline constexpr std::size_t kCardBackendsMax = 64;
inline constexpr std::size_t kCardAddressMax = 4096;  ///< Bytes of one backend's address.
inline constexpr std::size_t kCardExtraMax = 4096;    ///< Bytes of one backend's entry for one region.

enum class CardKind : std::uint8_t {
  kFull = 1,     ///< All regions: what is not in it is gone.
  kPartial = 2,  ///< Some regions: what is not in it stays as it was known.
  kDelta = 3,    ///< Changes since `base_revision`: removals first, then regions added.
};

/// One backend's own bytes for one region.
struct CardExtra {
  std::uint32_t backend = 0;  ///< Place in Card::backends.
  std::string_view bytes;
};

struct CardRegion {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  std::uint64_t size = 0;
  base::Id128 key;
  std::string_view name;  ///< Empty: anonymous.
  Device device;
  std::uint32_t extra_first = 0;  ///< In Card::extras; see Card::extras_of.
  std::uint16_t extra_count = 0;
  Rights rights = Rights::kNone;
};

struct CardBackend {
  std::string name;
  std::string address;  ///< Opaque to all but backends of this name.
};

struct CardRemoval {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
};

/// Moves, does not copy: its views would point into the other card.
struct Card {
  Card() = default;
  Card(Card&&) noexcept = default;
  Card& operator=(Card&&) noexcept = default;

  std::uint16_t version_min = kVersionMin, version_max = kVersionMax;
  CardKind kind = CardKind::kFull;
  bool driven = false;
  std::string name;
  base::Id128 incarnation;
  std::uint64_t revision = 0;
  std::uint64_t base_revision = 0;  ///< kDelta: what it builds on. Else 0.
  std::array<std::byte, 32> public_key{};
  std::uint64_t born = 0;  ///< Orders the incarnations of one name. 0: unknown, before all others.
  base::Id128 admission;   ///< Secret that lets its holder connect. Zero: everybody may. Never logged.
  std::vector<CardBackend> backends;
  std::vector<CardRegion> regions;   ///< By strictly ascending index.
  std::vector<CardExtra> extras;     ///< Those of one region lie together.
  std::vector<CardRemoval> removed;  ///< By ascending (index, generation). Only in a delta.
  std::unique_ptr<char[]> text;      ///< Behind the views of a decoded card.

  std::span<const CardExtra> extras_of(const CardRegion& region) const {
    return std::span(extras).subspan(region.extra_first, region.extra_count);
  }
  /// This backend's bytes for the region; empty when there are none.
  std::string_view extra_of(const CardRegion& region, std::uint32_t backend) const;
  /// Place of the backend of that name in `backends`, or -1.
  int find_backend(std::string_view backend_name) const;
};

/// The facts that check_card tells without building a Card.
struct CardSummary {
  std::uint16_t version_min = 0, version_max = 0;
  CardKind kind = CardKind::kFull;
  bool driven = false;
  std::string name;
  base::Id128 incarnation;
  std::uint64_t revision = 0;
  std::uint64_t base_revision = 0;
  std::array<std::byte, 32> public_key{};
  std::uint64_t born = 0;
  base::Id128 admission;
  std::size_t backends = 0;
  std::size_t regions = 0;
  std::size_t removed = 0;
};

/// kInvalid when the card breaks a bound or an order named above.
Result<std::string> encode(const Card& card);
/// kCorrupt tells what is wrong at which byte; kUnsupported tells both ranges of versions.
Result<Card> decode_card(std::span<const std::byte> bytes);
/// Makes the checks of decoding, with the same errors, without building.
Result<CardSummary> check_card(std::span<const std::byte> bytes);

}  // namespace hawser::wire
