#include "runtime/requests.h"

#include <gtest/gtest.h>

#include "runtime/test_seat.h"

namespace hawser::runtime {
namespace {

using agent::inner::Need;

using RequestsTest = TestSeat;

std::shared_ptr<Operation> some_operation() { return std::make_shared<Operation>(OperationKind::kSeveral); }

TEST_F(RequestsTest, WhatIsRefusedHasEndedAndKeepsNothing) {
  const std::shared_ptr<Operation> refused = some_operation();
  refused->self = refused;
  static_cast<void>(requests_.request(refused, Status(Code::kInvalid, "no")));
  EXPECT_TRUE(refused->final);
  EXPECT_EQ(refused->status.code(), Code::kInvalid);
  EXPECT_EQ(refused->self, nullptr);
  EXPECT_EQ(begun_.size(), 1U) << "the user gets a handle of it";
}

TEST_F(RequestsTest, ACallBeginsInTheLane) {
  bool began = false;
  static_cast<void>(requests_.begin(some_operation(), "call", [&](Instant) {
    began = true;
    return Need::kNothing;
  }));
  EXPECT_TRUE(began) << "the lane is free";
  EXPECT_FALSE(last().final);
}

TEST_F(RequestsTest, OnAClosedAgentACallIsRefused) {
  ASSERT_TRUE(seat_->agent.close(std::chrono::seconds(5)).ok());
  bool began = false;
  static_cast<void>(requests_.begin(some_operation(), "call", [&](Instant) {
    began = true;
    return Need::kNothing;
  }));
  EXPECT_FALSE(began);
  EXPECT_FALSE(end_of(last()).ok());
}

TEST_F(RequestsTest, NoTimeoutIsTheWorlds) {
  EXPECT_EQ(requests_.patience(Duration::zero()), std::chrono::seconds(5));
  EXPECT_EQ(requests_.patience(std::chrono::seconds(2)), std::chrono::seconds(2));
  EXPECT_EQ(requests_.deadline(std::chrono::seconds(2), Instant::from_ns(7)), Instant::from_ns(2'000'000'007));
}

}  // namespace
}  // namespace hawser::runtime
