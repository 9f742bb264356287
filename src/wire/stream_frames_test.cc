#include "wire/stream_frames.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/rng.h"

namespace hawser::wire {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return base::as_bytes(text); }

TEST(StreamFrames, HeadIsEightBytes) {
  std::string text;
  base::ByteWriter out(&text);
  encode_head(out, {.type = FrameType::kWrite, .flags = 1, .meta_size = 0x1f, .payload_size = 0x010203});
  EXPECT_EQ(text, std::string("\x01\x01\x1f\x00\x03\x02\x01\x00", 8));
  FrameHead head;
  ASSERT_TRUE(decode_head(std::span<const std::byte, 8>(bytes_of(text)), &head));
  EXPECT_EQ(head.type, FrameType::kWrite);
  EXPECT_EQ(head.flags, kFlagCovered);
  EXPECT_EQ(head.meta_size, 0x1f);
  EXPECT_EQ(head.payload_size, 0x010203u);
}

TEST(StreamFrames, HeadsBeyondTheirTypesBoundsAreRefused) {
  const auto decodes = [](FrameHead given) {
    std::string text;
    base::ByteWriter out(&text);
    encode_head(out, given);
    FrameHead head;
    return decode_head(std::span<const std::byte, 8>(bytes_of(text)), &head);
  };
  EXPECT_FALSE(decodes({.type = static_cast<FrameType>(0)}));
  EXPECT_FALSE(decodes({.type = static_cast<FrameType>(13)}));
  EXPECT_TRUE(decodes({.type = FrameType::kMessage, .payload_size = kMessagePayloadMax}));
  EXPECT_FALSE(decodes({.type = FrameType::kMessage, .payload_size = kMessagePayloadMax + 1}));
  EXPECT_FALSE(decodes({.type = FrameType::kWrite, .meta_size = 40, .payload_size = kPayloadMax + 1}));
  EXPECT_FALSE(decodes({.type = FrameType::kRead, .meta_size = 40, .payload_size = 1}));
  EXPECT_FALSE(decodes({.type = FrameType::kAck, .meta_size = 0}));
  EXPECT_FALSE(decodes({.type = FrameType::kPing, .meta_size = 7}));
  EXPECT_FALSE(decodes({.type = FrameType::kSkip, .meta_size = kMetaMax + 1}));
}

TEST(StreamFrames, PiecesOfEqualSizeAreShort) {
  const std::vector<RemotePiece> equal = {{4096, 4096}, {0, 4096}, {1ull << 40, 4096}};
  std::vector<RemotePiece> mixed = equal;
  mixed[1].size = 1;
  for (const auto& pieces : {equal, mixed}) {
    bool same = false;
    std::uint64_t total = 0;
    for (const RemotePiece& piece : pieces) total += piece.size;
    const std::size_t size = pieces_size(std::span(pieces), &same);
    std::string text;
    base::ByteWriter out(&text);
    encode_pieces(out, std::span(pieces), same);
    ASSERT_EQ(text.size(), size);
    EXPECT_EQ(size, 3 + pieces.size() * (same ? 8 : 12));
    std::array<RemotePiece, kPiecesMax> decoded;
    base::ByteReader in(text);
    ASSERT_EQ(decode_pieces(in, total, decoded), pieces.size());
    EXPECT_TRUE(in.finished());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      EXPECT_EQ(decoded[i].remote, pieces[i].remote);
      EXPECT_EQ(decoded[i].size, pieces[i].size);
    }
    base::ByteReader again(text);
    EXPECT_EQ(decode_pieces(again, total + 1, decoded), 0u);
    for (std::size_t cut = 0; cut < text.size(); ++cut) {
      base::ByteReader part(std::string_view(text).substr(0, cut));
      EXPECT_EQ(decode_pieces(part, total, decoded), 0u) << cut;
    }
  }
}

TEST(StreamFrames, SmallMessagesRoundTrip) {
  std::string text;
  base::ByteWriter out(&text);
  encode_bind(out, {.binding = 1, .index = 2, .generation = 3, .key = {4, 5}});
  encode_chunk(out, {.transfer = 6, .index = 7, .tag = kTagMax, .binding = 9});
  encode_bye(out, {.code = Code::kDisconnected, .reason = std::string(500, 'r'), .messages = 1ull << 40});
  base::ByteReader in(text);
  Bind bind;
  ChunkHead chunk;
  ASSERT_TRUE(decode_bind(in, &bind));
  EXPECT_EQ(bind.key, (base::Id128{4, 5}));
  ASSERT_TRUE(decode_chunk(in, &chunk));
  EXPECT_EQ(chunk.tag, kTagMax);
  EXPECT_EQ(chunk.binding, 9u);
  PathBye bye;
  ASSERT_TRUE(decode_bye(in, &bye));
  EXPECT_EQ(bye.code, Code::kDisconnected);
  EXPECT_EQ(bye.reason.size(), kByeReasonMax);
  EXPECT_EQ(bye.messages, 1ull << 40);
  std::uint32_t tag = 0;
  Outcome outcome = Outcome::kOk;
  EXPECT_TRUE(decode_ack(ack_entry(77, Outcome::kClosedMidway), &tag, &outcome));
  EXPECT_EQ(tag, 77u);
  EXPECT_EQ(outcome, Outcome::kClosedMidway);
  EXPECT_TRUE(decode_ack(ack_entry(kTagMax, Outcome::kTooManyBytes), &tag, &outcome));
  EXPECT_EQ(outcome, Outcome::kTooManyBytes);
  EXPECT_FALSE(decode_ack((kOutcomeLast + 1u) << 24, &tag, &outcome));
}

TEST(StreamFrames, AVoidNamesOneFrame) {
  std::string text;
  base::ByteWriter out(&text);
  encode_void(out, {.tag = 7, .stream = 2, .frame = 1ull << 40});
  ASSERT_EQ(text.size(), kVoidSize);
  VoidWrite write;
  base::ByteReader in(text);
  ASSERT_TRUE(decode_void(in, &write));
  EXPECT_EQ(write.tag, 7u);
  EXPECT_EQ(write.stream, 2u);
  EXPECT_EQ(write.frame, 1ull << 40);
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    base::ByteReader part(std::string_view(text).substr(0, cut));
    EXPECT_FALSE(decode_void(part, &write)) << cut;
  }
  text[3] = 1;  // A tag of more than 24 bits.
  base::ByteReader large(text);
  EXPECT_FALSE(decode_void(large, &write));
}

// The golden bytes of docs/wire-stream.md: QUOTAS.
TEST(StreamFrames, QuotasAreTwelveBytes) {
  std::string text;
  base::ByteWriter out(&text);
  encode_quotas(out, {.operations = 0x01020304, .bytes = 1ull << 40});
  EXPECT_EQ(text, std::string("\x04\x03\x02\x01\0\0\0\0\0\x01\0\0", kQuotasSize));
  Quotas quotas;
  base::ByteReader in(text);
  ASSERT_TRUE(decode_quotas(in, &quotas));
  EXPECT_EQ(quotas.operations, 0x01020304u);
  EXPECT_EQ(quotas.bytes, 1ull << 40);
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    base::ByteReader part(std::string_view(text).substr(0, cut));
    EXPECT_FALSE(decode_quotas(part, &quotas)) << cut;
  }
  text += '\0';
  base::ByteReader longer(text);
  EXPECT_FALSE(decode_quotas(longer, &quotas));
}

TEST(StreamFrames, ATrailerSaysWhatItsFrameMay) {
  for (std::uint8_t outcome = 0; outcome < 20; ++outcome) {
    EXPECT_EQ(is_trailer_of(FrameType::kWrite, outcome), outcome == 0 || outcome == 8) << int{outcome};
    EXPECT_EQ(is_trailer_of(FrameType::kData, outcome), outcome == 0 || (outcome >= 3 && outcome <= 5)) << int{outcome};
    EXPECT_EQ(is_trailer_of(FrameType::kMessage, outcome), outcome == 0) << int{outcome};
  }
}

}  // namespace
}  // namespace hawser::wire
