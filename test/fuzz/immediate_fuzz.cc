// Immediates from a peer: whatever comes, what is read is a chunk within the bounds, and a sender says that chunk by
// words that are read as the same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/check.h"
#include "proto/immediate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hawser::proto;
  hawser::base::ByteReader in(std::as_bytes(std::span(data, size)));
  const std::uint32_t receives = std::max(3u, static_cast<std::uint32_t>(in.u8()));
  ImmediateCounter peers, again;
  ImmediateSender sender;
  peers.begin(receives);
  again.begin(receives);
  sender.begin(receives);
  while (in.remaining() >= 4) {
    const auto read = peers.on_word(in.u32());
    if (!read) return 0;
    if (!*read) continue;
    const auto [transfer, chunk] = **read;
    HAWSER_ASSERT(transfer > 0 && transfer < kImmediateTransferEnd && chunk < kImmediateChunksMax, "not a chunk");
    const ImmediateWords words = sender.words_for(transfer, chunk);
    HAWSER_ASSERT(words.count > 0, "there is room, for all was counted");
    std::optional<ImmediateCounter::Chunk> last;
    for (const std::uint32_t word : words.all()) last = again.on_word(word).value();
    HAWSER_ASSERT(last && last->transfer == transfer && last->chunk == chunk, "another chunk was read");
    sender.sent(words, transfer);
    HAWSER_ASSERT(sender.on_counted(again.counted()).ok(), "more were read than sent");
  }
  return 0;
}
