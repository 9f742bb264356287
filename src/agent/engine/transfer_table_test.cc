// Transfers from when they are let in until each has ended, exactly once.

#include "agent/engine/transfer_table.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class TransferTableTest : public ::testing::Test {
 protected:
  Slot& enter(Duration time = 1h) {
    Slot& slot = rig_.slot_of(rig_.plan_of(peer_));
    slot.phase = Phase::kInFlight;
    slot.deadline = rig_.now() + time;
    EXPECT_TRUE(table_.enter(slot, session_, rig_.now()).ok());
    return slot;
  }
  Code code_of(const Slot& slot) const { return slot.status.code(); }

  Rig rig_;
  TransferTable& table_ = rig_.engine.transfers();
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
  HandPath& path_ = rig_.connect(peer_);
  Session& session_ = *peer_->session();
};

TEST_F(TransferTableTest, CoveredAndPlainOnesAreNumberedApart) {
  Slot& plain = enter();
  EXPECT_EQ(plain.id, 1 | kPlainBit);
  Slot& covered = rig_.slot_of(rig_.plan_of(peer_));
  covered.notify_size = 0;
  EXPECT_TRUE(table_.enter(covered, session_, rig_.now()).ok());
  EXPECT_EQ(covered.id, 1u);
  EXPECT_TRUE(covered.place_taken);
  EXPECT_EQ(table_.in_flight(), 2u);
  EXPECT_EQ(session_.slots, 2u);
}

TEST_F(TransferTableTest, NothingHappensToOneThatIsNotLetIn) {
  Slot& slot = rig_.slot_of(rig_.plan_of(peer_));
  slot.deadline = rig_.now();
  EXPECT_EQ(table_.enter(slot, session_, rig_.now()).code(), Code::kTimedOut);
  slot.deadline = Instant::max();
  slot.cancel_asked = true;
  EXPECT_EQ(table_.enter(slot, session_, rig_.now()).code(), Code::kCancelled);
  slot.cancel_asked = false;
  rig_.engine.sessions().begin_close();
  EXPECT_EQ(table_.enter(slot, session_, rig_.now()).code(), Code::kInvalid);
  EXPECT_EQ(table_.in_flight(), 0u);
  EXPECT_EQ(session_.slots, 0u);
}

class CountedUse final : public OneUse {
 public:
  CountedUse() : OneUse(false) {}
  void end() override { ++ends; }
  int ends = 0;
};

// Its submitter has left it to whoever holds the lane, and was told that it is under way.
TEST_F(TransferTableTest, OneThatIsRefusedAfterItsSubmissionHasUsedItsGrantUnlessThereWasNoRoom) {
  for (const Code code : {Code::kCancelled, Code::kTimedOut, Code::kInvalid, Code::kBusy}) {
    const bool is_used = code != Code::kBusy;
    const auto once = std::make_shared<CountedUse>();
    const auto plan = rig_.plan_of(peer_);
    auto region = std::make_shared<RemoteRegion>(*plan->remotes[0]);
    region->once = once;
    plan->remotes[0] = std::move(region);
    plan->is_single_use = true;
    const auto refuse = [&](Code why) {
      Slot& slot = rig_.slot_of(plan);
      slot.phase = Phase::kInFlight;
      table_.refuse(slot, Status(why, "it cannot begin"), rig_.now());
      EXPECT_EQ(code_of(slot), why);
    };
    refuse(code);
    EXPECT_EQ(once->ends, is_used ? 1 : 0);
    EXPECT_EQ(table_.enter(rig_.slot_of(plan), session_, rig_.now()).code(), is_used ? Code::kDenied : Code::kOk);
    if (is_used) refuse(Code::kDenied);
    EXPECT_EQ(once->ends, is_used ? 1 : 0) << "once";
  }
}

TEST_F(TransferTableTest, ADeadlineEndsItAndThoseThatAreLaterStay) {
  Slot& soon = enter(1ms);
  enter(1s);
  EXPECT_EQ(table_.next_deadline(), rig_.now() + 1ms);
  EXPECT_EQ(table_.expire(rig_.now() + 1ms - 1ns), 0u);
  EXPECT_EQ(table_.expire(rig_.now() + 1ms), 1u);
  EXPECT_EQ(code_of(soon), Code::kTimedOut);
  EXPECT_EQ(soon.status.buffer(), BufferState::kUntouched);
  EXPECT_EQ(soon.status.peer(), "there");
  EXPECT_EQ(table_.next_deadline(), rig_.now() + 1s);
}

TEST_F(TransferTableTest, WhileAPathHasChunksAnEndIsAskedForAndComesLater) {
  Slot& slot = enter();
  slot.in_flight = 1;
  table_.end_early(slot, Status(Code::kCancelled, "no more"), rig_.now());
  EXPECT_EQ(path_.cancelled, std::vector<std::uint64_t>{slot.id});
  EXPECT_EQ(table_.in_flight(), 1u);
  table_.end_early(slot, Status(Code::kTimedOut, "another"), rig_.now());
  EXPECT_EQ(path_.cancelled.size(), 1u) << "the first reason stays";
  slot.in_flight = 0;
  table_.end_quiet(slot, rig_.now());
  EXPECT_EQ(code_of(slot), Code::kCancelled);
  EXPECT_EQ(table_.in_flight(), 0u);
}

TEST_F(TransferTableTest, ThoseOfALabelOfARegionOfASessionEnd) {
  Slot& labelled = enter();
  labelled.label = 7;
  Slot& other = enter();
  EXPECT_EQ(table_.end_label(7, Status(Code::kCancelled, "label"), rig_.now()), 1u);
  EXPECT_EQ(code_of(labelled), Code::kCancelled);
  table_.end_of(session_, Status(Code::kDisconnected, "gone"), rig_.now());
  EXPECT_EQ(code_of(other), Code::kDisconnected);
  EXPECT_EQ(session_.flow.errors, 2u);
  EXPECT_EQ(session_.flow.cancels, 1u);
}

TEST_F(TransferTableTest, ACancelIsSeenOnce) {
  Slot& slot = enter();
  EXPECT_FALSE(table_.apply_cancel(slot, rig_.now()));
  slot.cancel_asked = true;
  EXPECT_EQ(table_.apply_cancels(rig_.now()), 1u);
  EXPECT_EQ(code_of(slot), Code::kCancelled);
  EXPECT_FALSE(table_.apply_cancel(slot, rig_.now()));
}

TEST_F(TransferTableTest, OfOneThatWasAnnouncedAndFailedThePeerIsTold) {
  Slot& slot = rig_.slot_of(rig_.plan_of(peer_));
  slot.notify_size = 0;
  ASSERT_TRUE(table_.enter(slot, session_, rig_.now()).ok());
  const std::uint64_t id = slot.id;
  slot.arrive_sent = true;
  table_.end_early(slot, Status(Code::kCancelled, "no more"), rig_.now());
  EXPECT_EQ(session_.cancelled, std::vector<std::uint64_t>{id});
}

TEST_F(TransferTableTest, ChunksWhosePathIsGoneWithoutAWordMayHaveLanded) {
  Slot& slot = enter();
  slot.in_flight = 1;
  table_.end_early(slot, Status(Code::kDisconnected, "gone"), rig_.now());
  table_.on_paths_gone(session_, rig_.now());
  EXPECT_EQ(code_of(slot), Code::kDisconnected);
  EXPECT_EQ(slot.status.buffer(), BufferState::kUnknown);
}

TEST_F(TransferTableTest, SoManyCoveredOnesMayBeInFlight) {
  Slot& oldest = rig_.slot_of(rig_.plan_of(peer_));
  oldest.notify_size = 0;
  ASSERT_TRUE(table_.enter(oldest, session_, rig_.now()).ok());
  Slot& next = rig_.slot_of(rig_.plan_of(peer_));
  next.notify_size = 0;
  session_.next_covered = oldest.id + proto::kArrivalsMax / 2;
  EXPECT_EQ(table_.enter(next, session_, rig_.now()).code(), Code::kBusy);
  --session_.next_covered;
  EXPECT_TRUE(table_.enter(next, session_, rig_.now()).ok());
}

}  // namespace
}  // namespace hawser::agent
