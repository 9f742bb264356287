#include "agent/shutdown.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "agent/test_lane.h"

namespace hawser::agent {
namespace {

using std::chrono::milliseconds;

class ShutdownTest : public testing::Test, public Shutdown::Steps {
 protected:
  using Log = std::vector<std::string>;

  // As the agent.
  bool unpublish(Instant deadline) override {
    done_.emplace_back("unpublish");
    deadline_ = deadline;
    return can_unpublish_;
  }
  void begin() override { done_.emplace_back("begin"); }
  Status release(Instant) override {
    done_.emplace_back("release");
    if (meanwhile_) meanwhile_();
    return release_status_;
  }
  bool is_used() override { return is_used_; }
  void finish() override {
    done_.emplace_back("finish");
    life_.end();
  }

  TestLane lane_;
  Life life_{"a"};
  Log done_;
  Instant deadline_;
  bool can_unpublish_ = true, is_used_ = false;
  Status release_status_;
  std::function<void()> meanwhile_;
  Shutdown shutdown_{lane_, lane_.clock, "a", life_, *this};
};

TEST_F(ShutdownTest, DoesEachStepOnce) {
  const Instant begun = lane_.clock.now();
  EXPECT_TRUE(shutdown_.close(milliseconds(7)).ok());
  EXPECT_EQ(deadline_, begun + milliseconds(7));
  EXPECT_EQ(done_, (Log{"unpublish", "begin", "release", "finish"}));
  EXPECT_TRUE(life_.is_closed());
  EXPECT_EQ(lane_.tidings, 1) << "for those who wait for what becomes of it";
  EXPECT_TRUE(shutdown_.close(milliseconds(7)).ok());
  shutdown_.close_for_good(milliseconds(7));
  EXPECT_EQ(done_.size(), 4u);
}

TEST_F(ShutdownTest, NothingNewBeginsOnceItIsClosing) {
  meanwhile_ = [&] { EXPECT_FALSE(life_.usable("call").ok()); };
  EXPECT_TRUE(shutdown_.close(milliseconds(7)).ok());
}

TEST_F(ShutdownTest, WhatIsInUseKeepsItClosingAndTheNextCallGoesOn) {
  is_used_ = true;
  release_status_ = Status(Code::kTimedOut, "region 'r' is still used");
  EXPECT_EQ(shutdown_.close(milliseconds(7)).code(), Code::kTimedOut);
  EXPECT_TRUE(life_.is_closing());
  EXPECT_FALSE(life_.is_closed());
  is_used_ = false;
  release_status_ = {};
  EXPECT_TRUE(shutdown_.close(milliseconds(7)).ok());
  EXPECT_EQ(done_, (Log{"unpublish", "begin", "release", "release", "finish"}));
}

TEST_F(ShutdownTest, ThatPeersHeardOfItIsNotWaitedForTwice) {
  release_status_ = Status(Code::kTimedOut, "backends were not quiet");
  EXPECT_EQ(shutdown_.close(milliseconds(7)).code(), Code::kTimedOut);
  EXPECT_TRUE(life_.is_closed()) << "no region is in use";
  EXPECT_TRUE(shutdown_.close(milliseconds(7)).ok());
}

TEST_F(ShutdownTest, TheLastHandleLeavesWhatIsInUse) {
  is_used_ = true;
  release_status_ = Status(Code::kTimedOut, "region 'r' is still used");
  shutdown_.close_for_good(milliseconds(7));
  EXPECT_EQ(done_.back(), "finish");
  EXPECT_TRUE(life_.is_closed());
}

TEST_F(ShutdownTest, ACardThatCouldNotBeTakenBackIsTriedAgainByTheNextCall) {
  can_unpublish_ = false;
  EXPECT_TRUE(shutdown_.close(milliseconds(7)).ok());
  can_unpublish_ = true;
  EXPECT_TRUE(shutdown_.close(milliseconds(7)).ok());
  EXPECT_EQ(done_, (Log{"unpublish", "begin", "release", "finish", "unpublish"}));
  EXPECT_TRUE(shutdown_.close(milliseconds(7)).ok());
  EXPECT_EQ(done_.size(), 5u);
}

TEST_F(ShutdownTest, ASecondCallWaitsForTheFirstUpToItsDeadline) {
  Status second;
  meanwhile_ = [&] { second = shutdown_.close(milliseconds(3)); };  // As another thread would.
  EXPECT_TRUE(shutdown_.close(milliseconds(7)).ok());
  EXPECT_EQ(second.code(), Code::kTimedOut);
  EXPECT_NE(second.to_string().find("another call closes agent 'a'"), std::string::npos) << second.to_string();
  EXPECT_EQ(lane_.waits, 3);
}

}  // namespace
}  // namespace hawser::agent
