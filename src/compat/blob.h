#pragma once

// The bytes that NIXL calls metadata: who made them, its card, and which registration each region of the card is.
//
//   magic; u32 length, agent name; u32 length, card; u32 count, then for each registration: u32 type, u32 region,
//   u64 dev, u64 addr, u64 len. Little-endian.
//
// Thread rule: pure functions. Lifetime: a decoded blob views the bytes that it was made from.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/compat/descs.h>
#include <hawser/status.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {

struct BlobEntry {
  MemType type = MemType::kDram;
  std::uint32_t region = 0;  ///< Its number in the card.
  Desc desc;
};

struct Blob {
  std::string_view agent;
  std::string_view card;  ///< What it says is checked by the card's own decoder.
  std::vector<BlobEntry> entries;
};

std::string encode_blob(const Blob& blob);
/// kCorrupt, saying what is wrong.
Result<Blob> decode_blob(std::string_view bytes);

}  // namespace compat
HAWSER_NAMESPACE_END
