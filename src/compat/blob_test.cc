#include "compat/blob.h"

#include <gtest/gtest.h>

namespace hawser::compat {
namespace {

std::string sample() {
  return encode_blob({.agent = "prefill",
                      .card = "card bytes",
                      .entries = {{.type = MemType::kDram, .region = 3, .desc = {.addr = 4096, .len = 77, .dev = 0}},
                                  {.type = MemType::kVram, .region = 9, .desc = {.addr = 1, .len = 2, .dev = 5}}}});
}

TEST(Blob, ComesBackAsItWas) {
  const std::string bytes = sample();
  const Result<Blob> blob = decode_blob(bytes);
  ASSERT_TRUE(blob) << blob.error().to_string();
  EXPECT_EQ(blob->agent, "prefill");
  EXPECT_EQ(blob->card, "card bytes");
  ASSERT_EQ(blob->entries.size(), 2u);
  EXPECT_EQ(blob->entries[1].type, MemType::kVram);
  EXPECT_EQ(blob->entries[1].region, 9u);
  EXPECT_EQ(blob->entries[1].desc, (Desc{.addr = 1, .len = 2, .dev = 5}));
}

TEST(Blob, NoPartOfOneAndNothingMoreIsOne) {
  const std::string bytes = sample();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_blob(std::string_view(bytes).substr(0, size))) << size;
  }
  EXPECT_FALSE(decode_blob(bytes + "x"));
}

TEST(Blob, AnUnknownMemoryTypeIsRefused) {
  std::string bytes =
      encode_blob({.agent = "a",
                   .card = "c",
                   .entries = {{.type = MemType::kFile, .region = 3, .desc = {.addr = 4096, .len = 77, .dev = 0}}}});
  // Its head, then one byte each for length and region, two for the address; the card and its length.
  char& head = bytes[bytes.size() - 5 - 5];
  ASSERT_TRUE(decode_blob(bytes));
  for (const int wrong : {5, 6, 7, 128 + 4}) {
    head = static_cast<char>(wrong | 8);
    EXPECT_FALSE(decode_blob(bytes)) << wrong;
  }
}

TEST(Blob, AnyOrderAndAnyNumbersComeBack) {
  constexpr std::uint64_t kMost = UINT64_MAX;
  Blob blob{.agent = "a", .card = "c", .entries = {}, .introduces = false};
  for (const Desc& desc : {Desc{.addr = kMost, .len = kMost, .dev = kMost}, Desc{.addr = 0, .len = 0, .dev = 0},
                           Desc{.addr = 0, .len = 0, .dev = 0}, Desc{.addr = 5, .len = kMost, .dev = 1},
                           Desc{.addr = 4, .len = 9, .dev = 1}, Desc{.addr = 13, .len = 9, .dev = 1}}) {
    for (const std::uint32_t region : {0u, 1u, UINT32_MAX, 7u}) {
      for (const MemType type : {MemType::kDram, MemType::kFile}) {
        blob.entries.push_back({.type = type, .region = region, .desc = desc});
      }
    }
  }
  const std::string bytes = encode_blob(blob);
  const Result<Blob> back = decode_blob(bytes);
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_FALSE(back->introduces);
  ASSERT_EQ(back->entries.size(), blob.entries.size());
  for (std::size_t i = 0; i < blob.entries.size(); ++i) {
    EXPECT_EQ(back->entries[i].type, blob.entries[i].type) << i;
    EXPECT_EQ(back->entries[i].region, blob.entries[i].region) << i;
    EXPECT_EQ(back->entries[i].desc, blob.entries[i].desc) << i;
  }
}

TEST(Blob, APoolOfBlocksTakesAByteEach) {
  constexpr std::uint32_t kBlocks = 1000;
  Blob blob{.agent = "a", .card = "c", .entries = {}};
  for (std::uint32_t i = 0; i < kBlocks; ++i) {
    blob.entries.push_back({.type = MemType::kDram, .region = i, .desc = {.addr = 65536 + i * 4096, .len = 4096}});
  }
  EXPECT_LT(encode_blob(blob).size(), kBlocks + 64);
}

TEST(Blob, MoreRegistrationsThanBytesAreRefused) {
  std::string bytes = encode_blob({.agent = "a", .card = "c", .entries = {}});
  bytes[bytes.size() - 6] = 100;  // The number of registrations; a card of one byte and its length follow.
  EXPECT_FALSE(decode_blob(bytes));
}

TEST(Blob, AnErrorOfTheCardIsTheAnswer) {
  const auto refuse = [](std::string*) { return Status(Code::kFailed, "no card today"); };
  const Result<std::string> made = encode_blob("a", true, BlobEntries(), refuse);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message(), "no card today");
}

}  // namespace
}  // namespace hawser::compat
