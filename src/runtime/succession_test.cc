#include "runtime/succession.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "runtime/test_seat.h"
#include "runtime/world_core.h"

namespace hawser::runtime {
namespace {

/// Of rank 0, beside a rank 1 that fails where it would have to vote.
class SuccessionTest : public TestSeat {
 protected:
  SuccessionTest() : TestSeat(2) {}

  void fail_the_other() { failures_.note_failure(1, Status(Code::kDisconnected, "it is gone")); }
  void open(RecoveryPolicy policy) {
    succession_.set_policy(policy);
    succession_.open({.name = "lone",
                      .requests = &requests_,
                      .roster = &roster_,
                      .seat = seat_.get(),
                      .failures = &failures_,
                      .accord = &*accord_},
                     {.last_good = [] { return 17U; },
                      .make =
                          [this](std::vector<std::uint32_t> ranks, std::uint64_t last_good, Instant) {
                            made_of_ = std::move(ranks);
                            last_good_ = last_good;
                            return std::make_shared<WorldCore>();
                          },
                      .abort = [this](const Status& why, Instant) { aborted_by_ = why; }});
  }
  /// What is left for later has been done.
  void settle() {
    ASSERT_TRUE(
        agent::inner::under_lane(seat_->agent, "test", [&](Instant now) { seat_->mailbox->run_jobs(now); }).ok());
  }

  Succession succession_;
  std::optional<std::vector<std::uint32_t>> made_of_;
  std::uint64_t last_good_ = 0;
  Status aborted_by_;
};

TEST_F(SuccessionTest, WhoIsLeftAgreesWithItself) {
  open(RecoveryPolicy::kManual);
  fail_the_other();
  static_cast<void>(succession_.agree(true, Duration::zero()));
  EXPECT_TRUE(end_of(last()).ok());
  const Result<AgreementValue> outcome = succession_.outcome(&last());
  ASSERT_TRUE(outcome.has_value()) << outcome.error().to_string();
  EXPECT_TRUE(outcome->flag);
  EXPECT_EQ(succession_.shrunk(&last()).error().code(), Code::kInvalid) << "it was no shrink";
}

TEST_F(SuccessionTest, AnOperationOfAnotherKindHasNoOutcome) {
  open(RecoveryPolicy::kManual);
  Operation other(OperationKind::kSeveral);
  EXPECT_EQ(succession_.outcome(&other).error().code(), Code::kInvalid);
  EXPECT_EQ(succession_.outcome(nullptr).error().code(), Code::kInvalid);
}

TEST_F(SuccessionTest, AShrinkEndsTheWorldAndGivesTheNextOneOnce) {
  open(RecoveryPolicy::kManual);
  fail_the_other();
  fail_the_other();
  static_cast<void>(succession_.begin_shrink({}, Duration::zero()));
  ASSERT_TRUE(end_of(last()).ok());
  EXPECT_TRUE(failures_.fates().is_revoked());
  const auto next = succession_.shrunk(&last());
  ASSERT_TRUE(next.has_value()) << next.error().to_string();
  EXPECT_NE(*next, nullptr);
  EXPECT_EQ(made_of_, std::vector<std::uint32_t>{0});
  EXPECT_EQ(last_good_, 17U);
  EXPECT_EQ(succession_.shrunk(&last()).error().code(), Code::kInvalid);
}

TEST_F(SuccessionTest, ARankLeavesOutNeitherItselfNorStrangers) {
  open(RecoveryPolicy::kManual);
  for (const std::uint32_t rank : {0U, 2U}) {
    static_cast<void>(succession_.begin_shrink(std::vector<std::uint32_t>{rank}, Duration::zero()));
    EXPECT_EQ(last().status.code(), Code::kInvalid);
  }
  EXPECT_FALSE(failures_.fates().is_revoked());
}

TEST_F(SuccessionTest, OnlyAnAutomaticWorldRecoversByItself) {
  open(RecoveryPolicy::kManual);
  const Result<Recovery::Made> made = succession_.recovered(Duration::zero());
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code(), Code::kInvalid);
}

TEST_F(SuccessionTest, AnAutomaticWorldWaitsForAFailure) {
  open(RecoveryPolicy::kAutomatic);
  EXPECT_EQ(succession_.recovered(Duration::zero()).error().code(), Code::kTimedOut);
  succession_.end(Status(Code::kCancelled, "closed"));
  EXPECT_EQ(succession_.recovered(Duration::zero()).error().code(), Code::kCancelled);
}

TEST_F(SuccessionTest, ThePolicyAbortEndsAllOperations) {
  open(RecoveryPolicy::kAbort);
  EXPECT_TRUE(succession_.aborted().ok());
  fail_the_other();
  succession_.note_failure();
  settle();
  EXPECT_EQ(aborted_by_.code(), Code::kDisconnected);
  EXPECT_EQ(succession_.aborted().code(), Code::kDisconnected);
  static_cast<void>(succession_.agree(true, Duration::zero()));
  EXPECT_EQ(end_of(last()).code(), Code::kDisconnected);
}

}  // namespace
}  // namespace hawser::runtime
