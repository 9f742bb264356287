#include "backend/stream/ack_queue.h"

#include <gtest/gtest.h>

#include "backend/stream/test_frames.h"

namespace hawser::backend::stream {
namespace {

TEST(AckQueue, HoldsWhatAnHonestPeerMayHaveUnderWayAndNoMore) {
  AckQueue acks;
  for (std::uint32_t tag = 0; tag < kAcksWaitingMax; ++tag) ASSERT_TRUE(acks.try_add(tag, wire::Outcome::kOk)) << tag;
  EXPECT_FALSE(acks.has_room());
  EXPECT_FALSE(acks.try_add(1, wire::Outcome::kOk));
  acks.clear();
  EXPECT_TRUE(acks.has_room());
}

TEST(AckQueue, SoManyFitOneFrame) {
  AckQueue acks;
  Outlet outlet;
  for (std::size_t i = 0; i < wire::kAcksMax; ++i) acks.add(1, wire::Outcome::kOk);
  acks.stage(outlet);
  EXPECT_EQ(frames_of(outlet).size(), 1u);
  for (std::size_t i = 0; i <= wire::kAcksMax; ++i) acks.add(1, wire::Outcome::kOk);
  acks.stage(outlet);
  EXPECT_EQ(frames_of(outlet).size(), 2u);
  EXPECT_TRUE(acks.empty());
}

TEST(AckQueue, TellsTagsAndOutcomesInOrder) {
  AckQueue acks;
  Outlet outlet;
  acks.add(7, wire::Outcome::kClosed);
  acks.add(wire::kTagMax, wire::Outcome::kOk);
  acks.stage(outlet);
  const auto frames = frames_of(outlet);
  ASSERT_EQ(frames.size(), 1u);
  std::uint32_t tag = 0;
  wire::Outcome outcome = wire::Outcome::kOk;
  ASSERT_TRUE(wire::decode_ack(frames[0].u32(0), &tag, &outcome));
  EXPECT_EQ(tag, 7u);
  EXPECT_EQ(outcome, wire::Outcome::kClosed);
  ASSERT_TRUE(wire::decode_ack(frames[0].u32(1), &tag, &outcome));
  EXPECT_EQ(tag, wire::kTagMax);
}

}  // namespace
}  // namespace hawser::backend::stream
