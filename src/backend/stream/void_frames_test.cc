#include "backend/stream/void_frames.h"

#include <gtest/gtest.h>

#include <array>

namespace hawser::backend::stream {
namespace {

TEST(VoidFrames, AFrameIsVoidOnce) {
  VoidFrames frames;
  const std::array<Inlet, 2> inlets;
  EXPECT_FALSE(frames.take(1, 5));
  ASSERT_TRUE(frames.add(1, 5, inlets));
  EXPECT_FALSE(frames.take(0, 5)) << "another stream";
  EXPECT_FALSE(frames.take(1, 4));
  EXPECT_TRUE(frames.take(1, 5));
  EXPECT_FALSE(frames.take(1, 5));
}

TEST(VoidFrames, APeerGivesUpNoMoreThanItCanHaveUnderWay) {
  VoidFrames frames;
  const std::array<Inlet, 2> inlets;
  for (std::uint64_t frame = 0; frame < kChunksMax; ++frame) ASSERT_TRUE(frames.add(1, frame, inlets));
  EXPECT_FALSE(frames.add(1, kChunksMax, inlets));
  frames.clear();
  EXPECT_TRUE(frames.add(1, kChunksMax, inlets));
}

}  // namespace
}  // namespace hawser::backend::stream
