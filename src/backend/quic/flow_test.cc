#include "backend/quic/flow.h"

#include <gtest/gtest.h>

#include <vector>

namespace hawser::backend::quic {
namespace {

TEST(Flow, WhatWillNotBeAcknowledgedIsNotUnderWay) {
  ChunkPool pool;
  Flow flow(pool, 1000);
  flow.out.append(std::vector<std::byte>(500));
  EXPECT_FALSE(flow.is_awaited()) << "nothing was sent";
  flow.out.note_sent(200, false);
  EXPECT_EQ(flow.under_way(), 500u);
  EXPECT_TRUE(flow.is_awaited());
  EXPECT_FALSE(flow.is_flushed());
  EXPECT_FALSE(flow.is_delivered());
  flow.reset = Status(Code::kDisconnected, "gone");
  EXPECT_EQ(flow.under_way(), 0u);
  EXPECT_FALSE(flow.is_awaited());
  EXPECT_TRUE(flow.is_flushed());
  EXPECT_TRUE(flow.is_delivered());
}

TEST(Flow, AnAbortedOneAwaitsNothing) {
  ChunkPool pool;
  Flow flow(pool, 1000);
  flow.out.append(std::vector<std::byte>(500));
  flow.out.note_sent(200, false);
  flow.out.abort();
  EXPECT_EQ(flow.under_way(), 0u);
  EXPECT_FALSE(flow.is_awaited());
}

}  // namespace
}  // namespace hawser::backend::quic
