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
  std::string bytes = sample();
  bytes[bytes.size() - 64] = 5;
  EXPECT_FALSE(decode_blob(bytes));
}

}  // namespace
}  // namespace hawser::compat
