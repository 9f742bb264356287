#include "runtime/collective_desk.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "runtime/test_seat.h"

namespace hawser::runtime {
namespace {

class CollectiveDeskTest : public TestSeat {
 protected:
  CollectiveDeskTest() {
    desk_.begin_with(0);
    desk_.open({.world = kWorld,
                .name = "lone",
                .requests = &requests_,
                .roster = &roster_,
                .seat = seat_.get(),
                .failures = &failures_});
  }
  ~CollectiveDeskTest() override {
    static_cast<void>(agent::inner::under_lane(
        seat_->agent, "test", [&](Instant now) { desk_.close(Status(Code::kCancelled, "the test is over"), now); }));
  }
  static CollectiveCall barrier() { return {.call = {.operation = schedule::Operation::kBarrier}}; }

  CollectiveDesk desk_;
};

TEST_F(CollectiveDeskTest, OfARankAloneACollectiveEndsAtOnceAndHasANumber) {
  static_cast<void>(desk_.begin(barrier(), {}));
  EXPECT_TRUE(end_of(last()).ok());
  EXPECT_EQ(desk_.book().last_number(), 0U);
  static_cast<void>(desk_.begin(barrier(), {.is_waited_for = true}));
  EXPECT_TRUE(end_of(last()).ok());
  EXPECT_EQ(desk_.book().last_number(), 1U);
  EXPECT_EQ(desk_.book().last_good(), 1U);
}

TEST_F(CollectiveDeskTest, OneOfTheWorldsOwnIsSeenBeforeItBegins) {
  bool is_finished = false;
  static_cast<void>(desk_.begin_own(barrier(), {}, [&](Collective& made) {
    made.elements.finish = [&] {
      is_finished = true;
      return Status();
    };
  }));
  EXPECT_TRUE(end_of(last()).ok());
  EXPECT_TRUE(is_finished);
}

TEST_F(CollectiveDeskTest, WhatCannotBeMadeHasNoNumber) {
  std::uint32_t value = 3;
  CollectiveCall broadcast = {.call = {.operation = schedule::Operation::kBroadcast, .root = 1, .count = 1},
                              .output = &value,
                              .type = DataType::kUInt32};
  const std::uint64_t before = desk_.book().last_number();
  static_cast<void>(desk_.begin(broadcast, {}));
  EXPECT_EQ(last().status.code(), Code::kInvalid);
  static_cast<void>(desk_.begin(broadcast, {.is_waited_for = true}));
  EXPECT_EQ(last().status.code(), Code::kInvalid);
  EXPECT_EQ(desk_.book().last_number(), before);
}

TEST_F(CollectiveDeskTest, BucketsAreRequestsOfTheirOwn) {
  std::vector<float> a(4, 1), b(4, 2);
  const std::vector<Tensor> tensors{{a.data(), a.size()}, {b.data(), b.size()}};
  EXPECT_EQ(desk_.all_reduce_bucketed(tensors, DataType::kFloat32, ReduceOp::kSum, 16, {}).size(), 2U);
  EXPECT_EQ(desk_.all_reduce_bucketed(tensors, DataType::kFloat32, ReduceOp::kSum, 1024, {}).size(), 1U);
  EXPECT_TRUE(end_of(last()).ok());
}

TEST_F(CollectiveDeskTest, InARevokedWorldNothingBegins) {
  ASSERT_TRUE(agent::inner::under_lane(seat_->agent, "test", [&](Instant now) {
                failures_.revoke(Status(Code::kCancelled, "enough"), false, now);
              }).ok());
  static_cast<void>(desk_.begin(barrier(), {}));
  EXPECT_EQ(end_of(last()).code(), Code::kCancelled);
}

TEST_F(CollectiveDeskTest, AWaitEndsWithTheOperationOrTheTime) {
  static_cast<void>(desk_.begin(barrier(), {}));
  EXPECT_TRUE(desk_.ends_within(last(), std::chrono::seconds(5)));
  const auto never = std::make_shared<Operation>(OperationKind::kSeveral);
  EXPECT_FALSE(desk_.ends_within(*never, std::chrono::milliseconds(1)));
}

}  // namespace
}  // namespace hawser::runtime
