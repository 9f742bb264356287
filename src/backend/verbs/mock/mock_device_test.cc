#include "backend/verbs/mock/mock_device.h"

#include <gtest/gtest.h>

namespace hawser::backend::verbs {
namespace {

TEST(MockDevice, AnEthernetPortHasALocalAndARoutableAddress) {
  MockDevice device;
  device.last_byte = 7;
  device.more.resize(1);
  const auto gids = device.gids_of(2);
  ASSERT_EQ(gids.size(), 2u);
  EXPECT_EQ(gids[0].type, GidType::kRoceV1);
  EXPECT_EQ(gids[1].type, GidType::kRoceV2);
  EXPECT_EQ(gids[1].bytes[12], 10);
  EXPECT_EQ(gids[1].bytes[14], 1) << "the port's number less one";
  EXPECT_EQ(gids[1].bytes[15], 7);
  EXPECT_TRUE(device.has_gid(2, std::span<const std::uint8_t, 16>(gids[1].bytes)));
  EXPECT_FALSE(device.has_gid(1, std::span<const std::uint8_t, 16>(gids[1].bytes)));
}

TEST(MockDevice, InfiniBandAndDatagramsHaveOne) {
  MockDevice device;
  device.ethernet = false;
  EXPECT_EQ(device.gids_of(1).size(), 1u);
  device.efa = true;
  EXPECT_EQ(device.gids_of(1)[0].type, GidType::kUnknown);
}

TEST(MockDevice, ATableByHandCounts) {
  MockDevice device;
  device.gids.resize(3);
  EXPECT_EQ(device.gids_of(1).size(), 3u);
}

}  // namespace
}  // namespace hawser::backend::verbs
