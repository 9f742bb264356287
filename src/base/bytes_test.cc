#include "base/bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/rng.h"

namespace hawser::base {
namespace {

TEST(Bytes, RoundTrip) {
  std::string out = "before";
  ByteWriter writer(&out);
  writer.u8(0x12);
  writer.u16(0x3456);
  writer.u32(0x789abcde);
  writer.u64(0x0123456789abcdef);
  writer.varint(300);
  writer.string("text");
  writer.id({1, 2});
  writer.bytes(as_bytes("raw"));
  EXPECT_TRUE(writer.ok());
  EXPECT_EQ(writer.size(), out.size() - 6);

  ByteReader reader(writer.written());
  EXPECT_EQ(reader.u8(), 0x12);
  EXPECT_EQ(reader.u16(), 0x3456);
  EXPECT_EQ(reader.u32(), 0x789abcdeu);
  EXPECT_EQ(reader.u64(), 0x0123456789abcdefu);
  EXPECT_EQ(reader.varint(), 300u);
  EXPECT_EQ(reader.string(10), "text");
  EXPECT_EQ(reader.id(), (Id128{1, 2}));
  EXPECT_EQ(as_text(reader.bytes(3)), "raw");
  EXPECT_TRUE(reader.finished());
}

TEST(Bytes, AreLittleEndian) {
  std::string out;
  ByteWriter writer(&out);
  writer.u32(0x01020304);
  writer.varint(0x80);
  writer.id({0x1100000000000000, 0x22});
  EXPECT_EQ(out, std::string("\x04\x03\x02\x01\x80\x01\x22\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x11", 22));
}

TEST(ByteWriter, AFixedSpanOverflowsOnceAndForAll) {
  std::array<std::byte, 6> out{};
  ByteWriter writer(std::span<std::byte>(out).first(5));
  writer.u32(1);
  writer.u16(2);
  EXPECT_FALSE(writer.ok());
  EXPECT_EQ(writer.size(), 4u);
  writer.u8(3);  // would fit; a hole in the middle would be worse
  EXPECT_EQ(writer.size(), 4u);
  EXPECT_EQ(out[4], std::byte{0});
  writer.patch_u32(40, 1);  // nothing to patch any more
  EXPECT_EQ(writer.written().size(), 4u);
}

TEST(ByteWriter, PatchesAndBlocks) {
  std::string out = "xx";
  ByteWriter writer(&out);
  const std::size_t at = writer.open_block();
  writer.string("inner");
  writer.close_block(at);
  writer.u8(9);

  ByteReader reader(writer.written());
  ByteReader inner = reader.block(100);
  EXPECT_EQ(inner.string(100), "inner");
  EXPECT_TRUE(inner.finished());
  EXPECT_EQ(reader.u8(), 9);
  EXPECT_TRUE(reader.finished());

  ByteReader strict(writer.written());
  EXPECT_FALSE(strict.block(5).ok()) << "a nested reader of a failed one has failed";
  EXPECT_FALSE(strict.ok());
}

TEST(ByteReader, FailureSticks) {
  const std::string in("\x01\x02\x03", 3);
  ByteReader reader{std::string_view(in)};
  EXPECT_EQ(reader.u32(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.u8(), 0);
  EXPECT_EQ(reader.remaining(), 0u);
  EXPECT_TRUE(reader.at_end());
  EXPECT_FALSE(reader.finished());
  EXPECT_TRUE(reader.id().is_zero());
}

TEST(ByteReader, EmptyInputHasNothing) {
  ByteReader reader;
  EXPECT_TRUE(reader.finished());
  EXPECT_TRUE(reader.bytes(0).empty());
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.varint(), 0u);
  EXPECT_FALSE(reader.ok());
}

TEST(ByteReader, LengthsAreChecked) {
  std::string out;
  ByteWriter(&out).varint(UINT64_MAX);
  ByteReader far(out);
  EXPECT_TRUE(far.string(SIZE_MAX).empty());
  EXPECT_FALSE(far.ok());

  out.clear();
  ByteWriter(&out).string("abcdef");
  ByteReader limited(out);
  EXPECT_TRUE(limited.string(5).empty());
  EXPECT_FALSE(limited.ok());
}

TEST(ByteReader, CountsAreBoundedByWhatIsLeft) {
  std::string out;
  ByteWriter writer(&out);
  writer.varint(4);
  writer.u64(0);
  EXPECT_EQ(ByteReader(out).count(100, 2), 4u);
  EXPECT_EQ(ByteReader(out).count(100, 3), 0u);
  EXPECT_EQ(ByteReader(out).count(3, 1), 0u);
}

TEST(Varint, EveryLength) {
  for (int bits = 0; bits < 64; ++bits) {
    for (const std::uint64_t value : {(std::uint64_t{1} << bits) - 1, std::uint64_t{1} << bits, UINT64_MAX >> bits}) {
      std::string out;
      ByteWriter(&out).varint(value);
      EXPECT_EQ(out.size(), varint_size(value));
      ByteReader reader(out);
      EXPECT_EQ(reader.varint(), value);
      EXPECT_TRUE(reader.finished());
      for (std::size_t cut = 0; cut < out.size(); ++cut) {
        ByteReader truncated(std::string_view(out).substr(0, cut));
        truncated.varint();
        EXPECT_FALSE(truncated.ok());
      }
    }
  }
}

TEST(Varint, OnlyTheShortestFormIsTaken) {
  for (const std::string_view bad : {std::string_view("\x80\x00", 2), std::string_view("\xff\x80\x00", 3),
                                     std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10),
                                     std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00", 11)}) {
    ByteReader reader(bad);
    reader.varint();
    EXPECT_FALSE(reader.ok());
  }
}

// Under AddressSanitizer this shows that no sequence of reads leaves its input.
TEST(ByteReader, RandomReadsOfRandomBytesStayInside) {
  Rng rng(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> in(rng.below(40));
    for (std::byte& byte : in) byte = static_cast<std::byte>(rng.chance(0.5) ? rng.below(8) : rng.below(256));
    ByteReader reader{std::span<const std::byte>(in)};
    std::size_t left = in.size();
    for (int step = 0; step < 20; ++step) {
      switch (rng.below(8)) {
        case 0:
          reader.u8();
          break;
        case 1:
          reader.u32();
          break;
        case 2:
          reader.varint();
          break;
        case 3:
          reader.string(rng.below(20));
          break;
        case 4:
          reader.count(rng.below(20), 1 + rng.below(4));
          break;
        case 5:
          reader.block(rng.below(20)).u16();
          break;
        case 6:
          reader.skip(rng.below(5));
          break;
        default:
          reader.id();
          break;
      }
      ASSERT_LE(reader.remaining(), left);
      left = reader.remaining();
    }
  }
}

}  // namespace
}  // namespace hawser::base
