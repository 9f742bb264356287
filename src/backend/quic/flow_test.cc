#include "backend/quic/flow.h"

#include <gtest/gtest.h>

#include <vector>

namespace hawser::backend::quic {
namespace {

class FlowTest : public testing::Test {
 protected:
  void append(std::size_t bytes) { flow_.out.append(std::vector<std::byte>(bytes, std::byte{1})); }

  ChunkPool pool_;
  Flow flow_{pool_, 1000};
};

TEST_F(FlowTest, NothingIsUnsentAtFirst) {
  EXPECT_FALSE(flow_.has_unsent());
  EXPECT_TRUE(flow_.is_delivered());
  EXPECT_EQ(unsent_of(flow_, SIZE_MAX).count, 0u);
  flow_.is_ending = true;
  EXPECT_TRUE(flow_.has_unsent()) << "the end is";
  EXPECT_FALSE(flow_.is_delivered());
  flow_.is_end_sent = true;
  EXPECT_TRUE(flow_.is_delivered());
}

TEST_F(FlowTest, OneDatagramTakesBytesOfSeveralChunks) {
  append(ByteQueue::kChunk);
  append(100);
  flow_.out_sent = ByteQueue::kChunk - 10;
  const FlowParts parts = unsent_of(flow_, SIZE_MAX);
  ASSERT_EQ(parts.count, 2u);
  EXPECT_EQ(parts.parts[0].len, 10u);
  EXPECT_EQ(parts.parts[1].len, 100u);
  EXPECT_EQ(parts.bytes, 110u);
  EXPECT_EQ(unsent_of(flow_, 1).bytes, 10u);
}

TEST_F(FlowTest, HasAtMostTheChunksOfTheLargestDatagram) {
  append(10 * ByteQueue::kChunk);
  const FlowParts parts = unsent_of(flow_, SIZE_MAX);
  EXPECT_EQ(parts.count, parts.parts.size());
  EXPECT_GE(parts.bytes, kDatagramMost);
}

TEST_F(FlowTest, WhatWillNotBeAcknowledgedIsNotUnderWay) {
  append(500);
  flow_.out_sent = 200;
  EXPECT_EQ(flow_.under_way(), 500u);
  EXPECT_TRUE(flow_.is_awaited());
  EXPECT_FALSE(flow_.is_flushed());
  EXPECT_TRUE(flow_.is_small(300));
  EXPECT_FALSE(flow_.is_small(299));
  flow_.reset = Status(Code::kDisconnected, "gone");
  EXPECT_EQ(flow_.under_way(), 0u);
  EXPECT_FALSE(flow_.is_awaited());
  EXPECT_TRUE(flow_.is_flushed());
}

}  // namespace
}  // namespace hawser::backend::quic
