// What a world does by itself after a failure, as decisions.

#include "runtime/recovery.h"

#include <gtest/gtest.h>

#include "runtime/world_core.h"

namespace hawser::runtime {
namespace {

using Step = Recovery::Step;

TEST(Recovery, ByHandNothingBegins) {
  Recovery recovery;
  EXPECT_EQ(recovery.note_failure(), Step::kNothing);
  EXPECT_TRUE(recovery.note_call("shrink", "w").ok());
  EXPECT_EQ(recovery.note_call_over(), Step::kNothing);
}

TEST(Recovery, OneAtATimeAndAgainUntilItIsOver) {
  Recovery recovery;
  recovery.set_policy(RecoveryPolicy::kAutomatic);
  EXPECT_EQ(recovery.note_failure(), Step::kShrink);
  EXPECT_EQ(recovery.note_failure(), Step::kNothing) << "the one that is under way takes it in";
  EXPECT_EQ(recovery.note_call_over(), Step::kShrink) << "it came to nothing";
  recovery.end(Recovery::Made{.world = std::make_shared<WorldCore>(), .failed = {2}});
  EXPECT_EQ(recovery.note_call_over(), Step::kNothing);
  EXPECT_EQ(recovery.note_failure(), Step::kNothing) << "that is the next world's";
}

TEST(Recovery, AnAgreementOfTheProgramEndsFirst) {
  Recovery recovery;
  recovery.set_policy(RecoveryPolicy::kAutomatic);
  EXPECT_TRUE(recovery.note_call("agree", "w").ok());
  EXPECT_EQ(recovery.note_failure(), Step::kNothing);
  EXPECT_EQ(recovery.note_call_over(), Step::kShrink);
  const Status busy = recovery.note_call("agree", "w");
  EXPECT_EQ(busy.code(), Code::kBusy);
  EXPECT_NE(busy.to_string().find("agree: a rank of world 'w' has failed"), std::string::npos) << busy.to_string();
}

TEST(Recovery, AnAbortHappensOnce) {
  Recovery recovery;
  recovery.set_policy(RecoveryPolicy::kAbort);
  EXPECT_EQ(recovery.note_failure(), Step::kAbort);
  EXPECT_EQ(recovery.note_failure(), Step::kNothing);
}

TEST(Recovery, TheEventIsGivenOnce) {
  Recovery recovery;
  EXPECT_FALSE(recovery.is_over());
  recovery.end(Recovery::Made{.world = std::make_shared<WorldCore>(), .failed = {1}});
  EXPECT_TRUE(recovery.is_over());
  recovery.end(Status(Code::kCancelled, "closed"));
  const Result<Recovery::Made> made = recovery.take("w");
  ASSERT_TRUE(made.has_value()) << "the first outcome stands";
  EXPECT_EQ(made->failed, std::vector<std::uint32_t>{1});
  EXPECT_EQ(recovery.take("w").error().code(), Code::kInvalid);
  EXPECT_EQ(recovery.give_up(), nullptr);
}

TEST(Recovery, WhatKeepsItFromAWorldStays) {
  Recovery recovery;
  recovery.end(Status(Code::kDenied, "no quorum"));
  EXPECT_EQ(recovery.take("w").error().code(), Code::kDenied);
  EXPECT_EQ(recovery.take("w").error().code(), Code::kDenied);
}

TEST(Recovery, PoliciesHaveNames) {
  EXPECT_EQ(to_string(RecoveryPolicy::kManual), "manual");
  EXPECT_EQ(to_string(RecoveryPolicy::kAutomatic), "automatic");
  EXPECT_EQ(to_string(RecoveryPolicy::kAbort), "abort");
}

}  // namespace
}  // namespace hawser::runtime
