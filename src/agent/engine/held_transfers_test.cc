// Transfers that wait for words and for other transfers.

#include "agent/engine/held_transfers.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class HeldTransfersTest : public ::testing::Test {
 protected:
  void wait_for(Slot& slot, std::uint64_t value) {
    slot.has_extras = true;
    slot.after = {.region = nullptr, .word = &word_, .value = value};
  }
  std::vector<Slot*> reached() {
    std::vector<Slot*> begun;
    held_.begin_reached([&](Slot& slot) {
      held_.let_off(slot);
      begun.push_back(&slot);
    });
    return begun;
  }

  std::atomic<std::uint64_t> word_{0};
  HeldTransfers held_;
  Slot one_, two_;
  const Instant now_ = Instant::from_ns(1'000'000'000);
};

TEST_F(HeldTransfersTest, AWordIsReachedAtItsValueAndBeyond) {
  wait_for(one_, 5);
  word_ = 4;
  EXPECT_TRUE(HeldTransfers::must_wait(one_));
  word_ = 5;
  EXPECT_FALSE(HeldTransfers::must_wait(one_));
  word_ = 6;
  EXPECT_FALSE(HeldTransfers::must_wait(one_));
}

TEST_F(HeldTransfersTest, ThoseWhoseWordIsThereBegin) {
  wait_for(one_, 1);
  wait_for(two_, 2);
  held_.hold(one_);
  held_.hold(two_);
  EXPECT_EQ(held_.count(), 2u);
  EXPECT_TRUE(reached().empty());
  word_ = 1;
  EXPECT_EQ(reached(), std::vector<Slot*>{&one_});
  EXPECT_EQ(held_.count(), 1u);
  word_ = 2;
  EXPECT_EQ(reached(), std::vector<Slot*>{&two_});
  EXPECT_FALSE(held_.has_waiting());
}

TEST_F(HeldTransfersTest, AFollowerIsCalledWhenItsLeaderIsFinal) {
  one_.phase = Phase::kInFlight;
  two_.leader = &one_;
  EXPECT_TRUE(HeldTransfers::must_wait(two_));
  held_.hold(two_);
  EXPECT_FALSE(held_.has_waiting()) << "it stands with its leader";
  one_.status = Status(Code::kTimedOut, "late");
  one_.phase = Phase::kFinal;
  held_.call_followers(one_);
  EXPECT_TRUE(held_.has_called());
  EXPECT_EQ(held_.next_called(), &two_);
  EXPECT_EQ(held_.next_called(), nullptr);
  const Status lost = HeldTransfers::lost_leader(two_);
  EXPECT_EQ(lost.code(), Code::kCancelled);
  EXPECT_EQ(lost.buffer(), BufferState::kUntouched);
  held_.let_off(two_);
  held_.let_off(two_);
  EXPECT_EQ(held_.count(), 0u);
}

TEST_F(HeldTransfersTest, ALeaderThatEndedWellIsNoReasonToEnd) {
  one_.phase = Phase::kFinal;
  two_.leader = &one_;
  EXPECT_TRUE(HeldTransfers::lost_leader(two_).ok());
  EXPECT_FALSE(HeldTransfers::must_wait(two_));
}

TEST_F(HeldTransfersTest, ASleeperLooksInPausesThatGrowUpToAMillisecond) {
  EXPECT_EQ(held_.look_again(), Instant::max());
  wait_for(one_, 1);
  held_.hold(one_);
  Duration before = Duration::zero();
  for (int i = 0; i < 10; ++i) {
    held_.put_off(now_);
    const Duration pause = held_.look_again() - now_;
    EXPECT_EQ(pause, std::min<Duration>(before == Duration::zero() ? 50us : 2 * before, 1ms));
    before = pause;
  }
  wait_for(two_, 1);
  held_.hold(two_);
  held_.put_off(now_);
  EXPECT_EQ(held_.look_again(), now_ + 50us) << "with another one they begin short again";
  held_.let_off(one_);
  held_.let_off(two_);
}

TEST_F(HeldTransfersTest, ThereIsRoomForSoMany) {
  std::vector<std::unique_ptr<Slot>> slots;
  for (std::uint32_t i = 0; i < kHeldMax; ++i) {
    EXPECT_FALSE(held_.is_full());
    slots.push_back(std::make_unique<Slot>());
    wait_for(*slots.back(), 1);
    held_.hold(*slots.back());
  }
  EXPECT_TRUE(held_.is_full());
  for (const auto& each : slots) held_.let_off(*each);
  EXPECT_FALSE(held_.is_full());
}

}  // namespace
}  // namespace hawser::agent
