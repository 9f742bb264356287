#include "backend/verbs/memory/region_keys.h"

#include <gtest/gtest.h>

namespace hawser::backend::verbs {
namespace {

constexpr base::Id128 kRegionKey = {.hi = 0x0102030405060708, .lo = 0x1112131415161718};
const std::vector<RemoteKey> kTwoKeys = {{.iova = 0x7f0000001000, .rkey = 0xabcd}, {.iova = 0, .rkey = 7}};

// Golden: peers of the same version read it.
TEST(RegionKeys, AreMaskedWithTheRegionsKey) {
  const std::string bytes = encode_region_keys(kTwoKeys, kRegionKey);
  const std::string_view golden(
      "\x01\x02\xc5\xac\x06\x05\x18\x07\x16\x15\x14\x6c\x12\x11\x0f\x07\x06\x05\x18\x17\x16\x15\x14\x13\x12\x11", 26);
  EXPECT_EQ(bytes, golden);
  const std::vector<RemoteKey> back = decode_region_keys(bytes, kRegionKey).value();
  ASSERT_EQ(back.size(), 2u);
  for (std::size_t i = 0; i < back.size(); ++i) {
    EXPECT_EQ(back[i].iova, kTwoKeys[i].iova);
    EXPECT_EQ(back[i].rkey, kTwoKeys[i].rkey);
  }
}

TEST(RegionKeys, WhatIsNotJustKeysIsRefused) {
  const std::string bytes = encode_region_keys(kTwoKeys, kRegionKey);
  EXPECT_EQ(decode_region_keys("", kRegionKey).error().code(), Code::kUnsupported);
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    EXPECT_EQ(decode_region_keys(bytes.substr(0, size), kRegionKey).error().code(), Code::kCorrupt) << size;
  }
  EXPECT_EQ(decode_region_keys(bytes + 'x', kRegionKey).error().code(), Code::kCorrupt) << "more is another version's";
  EXPECT_EQ(decode_region_keys("\2\1" + bytes.substr(2), kRegionKey).error().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace hawser::backend::verbs
