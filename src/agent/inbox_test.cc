#include "agent/inbox.h"

#include <array>

#include <gtest/gtest.h>

#include "agent/peer_core.h"
#include "agent/session.h"

namespace hawser::agent {
namespace {

std::shared_ptr<PeerCore> peer(const char* name) {
  return std::make_shared<PeerCore>(std::weak_ptr<Core>(), name, base::Id128{1, 2});
}

TEST(Inbox, KeepsNotificationsInOrderWhileItsRingGrowsAndTurns) {
  Inbox inbox(4);
  const auto from = peer("p");
  std::array<Notification, 7> out;
  int pushed = 0;
  int taken = 0;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 11; ++i) inbox.push_notification(from, std::to_string(pushed++));
    const std::size_t count = inbox.take_notifications(out);
    ASSERT_EQ(count, out.size());
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(out[i].text, std::to_string(taken++));
  }
  EXPECT_TRUE(inbox.has_notifications());
  EXPECT_EQ(out[0].peer.name(), "p");
}

TEST(Inbox, MessagesAreTakenByChannel) {
  Inbox inbox(4);
  inbox.push_message(peer("a"), 16, "x");
  inbox.push_message(peer("a"), 17, "y");
  EXPECT_FALSE(inbox.take_message(18));
  EXPECT_EQ(inbox.take_message(17)->bytes, "y");
  EXPECT_FALSE(inbox.take_message(17));
  EXPECT_EQ(inbox.take_message(16)->bytes, "x");
}

TEST(Inbox, DropsTheOldestEventsAndCountsThem) {
  Inbox inbox(2);
  for (const char* name : {"a", "b", "c"}) {
    inbox.push_event({.kind = PeerEvent::Kind::kUp, .peer = Peer(peer(name)), .cause = {}});
  }
  EXPECT_EQ(inbox.events_dropped(), 1u);
  EXPECT_EQ(inbox.take_event()->peer.name(), "b");
  EXPECT_EQ(inbox.take_event()->peer.name(), "c");
  EXPECT_FALSE(inbox.take_event());
}

TEST(Inbox, CountsArrivals) {
  Inbox inbox(2);
  const std::uint64_t before = inbox.arrivals();
  inbox.push_notification(peer("a"), "");
  inbox.push_message(peer("a"), 16, "");
  EXPECT_EQ(inbox.arrivals(), before + 2);
}

}  // namespace
}  // namespace hawser::agent
