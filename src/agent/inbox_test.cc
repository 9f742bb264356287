#include "agent/inbox.h"

#include <array>

#include <gtest/gtest.h>

#include "agent/peer_core.h"
#include "agent/session.h"
#include "base/inside.h"

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

TEST(Inbox, APeerThatIsForgottenIsNotKeptByPlacesThatItHadFilled) {
  Inbox inbox(4);
  const auto other = peer("other");
  auto from = peer("p");
  const std::weak_ptr<PeerCore> watch = from;
  Notification out;
  for (const auto& sender : {from, other, from}) inbox.push_notification(sender, "x");
  for (int i = 0; i < 2; ++i) ASSERT_EQ(inbox.take_notifications({&out, 1}), 1u);
  EXPECT_EQ(out.peer.name(), "other");
  inbox.let_go_of(*from);
  from.reset();
  EXPECT_FALSE(watch.expired());  // One of its notifications still waits.
  ASSERT_EQ(inbox.take_notifications({&out, 1}), 1u);
  EXPECT_EQ(out.peer.name(), "p");
  inbox.let_go_of(*core_of(out.peer));
  out = {};
  EXPECT_TRUE(watch.expired());
}

TEST(Inbox, MessagesAreTakenByChannel) {
  Inbox inbox(4);
  inbox.push_message(peer("a"), 16, "x");
  inbox.push_message(peer("a"), 17, "y");
  std::array<Message, 2> out;
  EXPECT_EQ(inbox.take_messages(18, out), 0u);
  ASSERT_EQ(inbox.take_messages(17, out), 1u);
  EXPECT_EQ(out[0].bytes, "y");
  EXPECT_EQ(out[0].channel, 17u);
  EXPECT_EQ(inbox.take_messages(17, out), 0u);
  ASSERT_EQ(inbox.take_messages(16, out), 1u);
  EXPECT_EQ(out[0].bytes, "x");
  EXPECT_EQ(out[0].channel, 16u);
}

TEST(Inbox, MessagesComeInOrderHoweverManyAreTakenAtOnce) {
  Inbox inbox(4);
  const auto from = peer("p");
  int pushed = 0, taken = 0;
  std::array<Message, 7> out;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 5 + round % 5; ++i) inbox.push_message(from, 16, std::to_string(pushed++));
    const std::size_t count = inbox.take_messages(16, out);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i].bytes, std::to_string(taken++));
  }
  EXPECT_GT(taken, 300);
}

TEST(Inbox, LargeBuffersDoNotStay) {
  Inbox inbox(4);
  const auto from = peer("p");
  Message out;
  for (int i = 0; i < 20; ++i) {  // More often than there are places.
    inbox.push_message(from, 16, std::string(64 * 1024, 'x'));
    ASSERT_EQ(inbox.take_messages(16, {&out, 1}), 1u);
    ASSERT_EQ(out.bytes.size(), 64u * 1024);
    out.bytes.assign("small");  // Its buffer goes into the place of the next one.
    inbox.push_message(from, 16, "y");
    ASSERT_EQ(inbox.take_messages(16, {&out, 1}), 1u);
    EXPECT_LT(out.bytes.capacity(), 64u * 1024);
  }
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
