// What the target of a transfer is told.

#include "agent/engine/arrive_sender.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class ArriveSenderTest : public ::testing::Test {
 protected:
  ArriveSenderTest() {
    slot_.id = 5;
    session_.covered.push_back(slot_);
    path_.sent.clear();
  }
  ~ArriveSenderTest() override { slot_.covered_hook.unlink(); }
  wire::Arrive sent(std::size_t at) {
    return *wire::decode_arrive(*wire::open_envelope(base::as_bytes(path_.sent.at(at))));
  }

  Rig rig_;
  SessionLink link_{rig_.engine.sessions(), rig_.engine.ports()};
  ArriveSender arrives_{rig_.engine.sessions(), link_};
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
  HandPath& path_ = rig_.connect(peer_);
  Session& session_ = *peer_->session();
  Slot slot_;
  std::size_t work_ = 0;
};

TEST_F(ArriveSenderTest, ATransferIsAnnouncedWithItsNotificationAndSignal) {
  slot_.notify = "done";
  slot_.notify_size = 4;
  auto region = std::make_shared<RemoteRegion>();
  region->index = 9;
  slot_.signal = {.region = region, .offset = 16, .add = 3};
  ASSERT_TRUE(arrives_.announce(slot_, session_, 7));
  EXPECT_TRUE(slot_.arrive_sent);
  const wire::Arrive arrive = sent(0);
  EXPECT_EQ(arrive.transfer, 5u);
  EXPECT_EQ(arrive.chunks, 7u);
  EXPECT_EQ(arrive.oldest, 5u);
  EXPECT_EQ(base::as_text(*arrive.notify), "done");
  EXPECT_EQ(arrive.signal->region, 9u);
  EXPECT_EQ(arrive.signal->offset, 16u);
  EXPECT_EQ(arrive.signal->add, 3u);
  EXPECT_EQ(session_.flow.notifications_sent, 1u);
}

TEST_F(ArriveSenderTest, WhatFailedIsTakenBackBeforeAllElse) {
  session_.next_covered = 6;
  arrives_.on_uncounted(session_, 4);  // It has ended here: the peer is told that all is visible.
  arrives_.cancel(session_, 3);
  EXPECT_TRUE(arrives_.pump(session_, &work_));
  EXPECT_EQ(work_, 2u);
  EXPECT_TRUE(sent(0).cancelled);
  EXPECT_EQ(sent(0).transfer, 3u);
  EXPECT_FALSE(sent(1).cancelled);
  EXPECT_EQ(sent(1).transfer, 4u);
  EXPECT_EQ(sent(1).chunks, 0u);
}

TEST_F(ArriveSenderTest, OfOneThatGoesOnItsEndTells) {
  session_.next_covered = 6;
  arrives_.on_uncounted(session_, 5);
  EXPECT_TRUE(slot_.uncounted);
  EXPECT_TRUE(session_.visible.empty());
  ASSERT_TRUE(arrives_.tell_all_visible(slot_, session_));
  EXPECT_FALSE(slot_.uncounted);
}

TEST_F(ArriveSenderTest, OfOneThatWasNeverAnnouncedNothingIsSaid) {
  session_.next_covered = 6;
  arrives_.on_uncounted(session_, 6);
  EXPECT_TRUE(session_.visible.empty());
}

TEST_F(ArriveSenderTest, WithoutRoomNothingIsLost) {
  session_.control_serial = 0;
  while (link_.push(session_, Priority::kRealtime, {}, base::as_bytes(std::string_view("x")))) continue;
  EXPECT_FALSE(arrives_.announce(slot_, session_, 1));
  EXPECT_FALSE(slot_.arrive_sent);
  arrives_.cancel(session_, 3);
  EXPECT_FALSE(arrives_.pump(session_, &work_));
  EXPECT_EQ(session_.cancelled, std::vector<std::uint64_t>{3});
}

}  // namespace
}  // namespace hawser::agent
