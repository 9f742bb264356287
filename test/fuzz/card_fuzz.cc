// Cards from anyone: decoding and checking answer alike, and what they accept survives being encoded again. Each input
// is tried as it is and with size and checksum mended, or the fuzzer would never come past them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "wire/card.h"
#include "wire/card_format.h"

namespace {

using namespace hawser::wire;
using hawser::base::as_bytes;

void try_card(std::span<const std::byte> bytes) {
  const hawser::Result<Card> card = decode_card(bytes);
  const hawser::Result<CardSummary> summary = check_card(bytes);
  HAWSER_ASSERT(card.error() == summary.error(), "decoding and checking differ");
  if (!card) return;
  HAWSER_ASSERT(card->regions.size() == summary->regions, "the summary counts otherwise");
  const hawser::Result<std::string> again = encode(*card);
  HAWSER_ASSERT(again, "what was decoded cannot be encoded");
  const hawser::Result<Card> second = decode_card(as_bytes(*again));
  HAWSER_ASSERT(second && second->regions.size() == card->regions.size(), "a card changed");
  HAWSER_ASSERT(encode(*second).value() == *again, "a card changed");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try_card(std::as_bytes(std::span(data, size)));
  std::string mended(reinterpret_cast<const char*>(data), size);
  if (size < card_format::kFrameSize) return 0;
  const std::size_t covered = size - kChecksumSize;
  hawser::base::store_little_endian(mended.data() + card_format::kHeaderSize - 4,
                                    static_cast<std::uint32_t>(size - card_format::kFrameSize));
  hawser::base::store_little_endian(mended.data() + covered, checksum(as_bytes(mended).first(covered)));
  try_card(as_bytes(mended));
  return 0;
}
