#include "rdma/live_batches.h"

#include <gtest/gtest.h>

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

using std::chrono::seconds;

TEST(LiveBatches, ABatchIsFoundUntilItHasEnded) {
  LiveBatches batches;
  const auto one = batches.make({}, 2, seconds(1)), other = batches.make({}, 1, seconds(1));
  EXPECT_NE(one->serial, other->serial);
  EXPECT_EQ(batches.find(one->serial), one);
  batches.ended(one->serial);
  batches.ended(one->serial);
  EXPECT_EQ(batches.find(one->serial), nullptr);
  EXPECT_EQ(batches.find(other->serial), other);
}

TEST(LiveBatches, ABatchOfNothingIsNotKept) {
  LiveBatches batches;
  const auto made = batches.make({}, 0, seconds(1));
  EXPECT_TRUE(made->done());
  EXPECT_EQ(batches.find(made->serial), nullptr);
}

TEST(LiveBatches, NothingIsKeptOfBatchesThatWereTaken) {
  LiveBatches batches;
  const auto made = batches.make({}, 1, seconds(1));
  EXPECT_EQ(batches.take_all().at(made->serial), made);
  EXPECT_EQ(batches.find(made->serial), nullptr);
  EXPECT_TRUE(batches.take_all().empty());
}

TEST(LiveBatches, WhatWasNeverPostedEndsAtOnceWhenAllAreToldTo) {
  LiveBatches batches;
  const auto made = batches.make({}, 2, seconds(1));
  made->settle(0, {.status = {}, .bytes = 7});
  const LiveBatches::All all = batches.take_all();
  tell_to_end(all);
  await_ends(all, Clock::steady().now());
  ASSERT_TRUE(made->done());
  EXPECT_TRUE(made->outcomes()[0].status.ok());
  EXPECT_EQ(made->outcomes()[1].status.code(), Code::kCancelled);
}

}  // namespace
}  // namespace rdma
HAWSER_NAMESPACE_END
