// What the lane tells to those outside of it.

#include "agent/engine/news.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class NewsTest : public ::testing::Test {
 protected:
  Inbox inbox_{4};
  HandHost host_;
  News news_{inbox_, host_};
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
};

TEST_F(NewsTest, WaitersAreWokenOnceForAllThatHappened) {
  news_.wake_waiters();
  EXPECT_EQ(host_.wakes, 0);
  news_.note();
  news_.note();
  EXPECT_TRUE(news_.any());
  news_.wake_waiters();
  news_.wake_waiters();
  EXPECT_EQ(host_.wakes, 1);
  EXPECT_FALSE(news_.any());
}

TEST_F(NewsTest, WhatComesIsInTheInboxAndQueuesHearOfIt) {
  news_.notification(peer_, "written");
  news_.message(peer_, 1000, "hello");
  news_.peer_event({.kind = PeerEvent::Kind::kUp, .peer = Peer(peer_), .cause = {}});
  news_.room();
  using enum CompletionKind;
  EXPECT_EQ(host_.hints, (std::vector<CompletionKind>{kNotification, kMessage, kPeer, kRoom}));
  EXPECT_TRUE(inbox_.has_notifications());
  EXPECT_TRUE(inbox_.take_event().has_value());
  Message message;
  EXPECT_EQ(inbox_.take_messages(1000, {&message, 1}), 1u);
  EXPECT_TRUE(news_.any());
}

TEST_F(NewsTest, ASignalCountsAsAnArrival) {
  const std::uint64_t before = inbox_.arrivals();
  news_.signal();
  EXPECT_EQ(inbox_.arrivals(), before + 1);
  EXPECT_TRUE(news_.any());
}

}  // namespace
}  // namespace hawser::agent
