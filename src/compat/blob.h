#pragma once

// The bytes that NIXL calls metadata: who made them, its card, and which registration each region of the card is.
//
//   magic; agent name after its length; 1 if an agent that is not known may be met by it, else 0; the number of
//   registrations; for each a byte with its type (0-2) and four bits for what the one before makes likely: the same
//   device (3), the same length (4), the next region (5), the address where that one ends (6), and where a bit is not
//   set, the value, in this order; the card after its length (u32).
//
// Other numbers are varints. A pool that is registered block by block takes one byte a block here, beside its card.
//
// Thread rule: pure functions. Lifetime: a decoded blob views the bytes that it was made from.

#include <cstdint>
#include <functional>
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
  /// An agent that is not known may be met by it. Else it is a part for those who know the agent already.
  bool introduces = true;
};

/// Entries as they stand in a blob, which takes a byte or two each: many need not lie in memory otherwise.
class BlobEntries {
 public:
  void add(const BlobEntry& entry);
  std::size_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  std::size_t count_ = 0;
  BlobEntry last_;
};

/// Appends a card to what it is given.
using PutCard = std::function<Status(std::string*)>;

/// The card is made in its place: with many regions, copying it is a good part of the whole. Its error is the answer.
Result<std::string> encode_blob(std::string_view agent, bool introduces, const BlobEntries& entries,
                                const PutCard& put_card);
std::string encode_blob(const Blob& blob);
/// kCorrupt, saying what is wrong.
Result<Blob> decode_blob(std::string_view bytes);

}  // namespace compat
HAWSER_NAMESPACE_END
