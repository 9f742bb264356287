// Notifications and messages of users, with their credit.

#include "agent/engine/message_desk.h"

#include <atomic>
#include <thread>

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

constexpr std::uint32_t kFirstUserChannel = wire::kUserChannelMin;

constexpr wire::Link kLink{Priority::kRealtime, kFirstUserChannel};

class MessageDeskTest : public ::testing::Test {
 protected:
  MessageDeskTest() { path_.sent.clear(); }
  Session& session() { return *peer_->session(); }
  Status send(std::string_view text) {
    const MessageDesk::Sending sent = desk_.send(session(), kFirstUserChannel, base::as_bytes(text), rig_.now());
    return sent ? sent->error() : Status(Code::kFailed, "messages that were left have to go first");
  }
  void give_credit(std::uint64_t messages) {
    EXPECT_TRUE(desk_.on_credit(session(), {.channel = kFirstUserChannel, .limits = channel_window(messages)}).ok());
  }

  Rig rig_;
  MessageDesk& desk_ = rig_.engine.messages();
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
  HandPath& path_ = rig_.connect(peer_);
};

TEST_F(MessageDeskTest, AMessageNeedsAnOpenChannelAndAPlaceThere) {
  EXPECT_NE(send("one").to_string().find("has not opened channel"), std::string::npos);
  give_credit(2);
  EXPECT_TRUE(send("one").ok());
  EXPECT_TRUE(send("two").ok());
  const Status full = send("three");
  EXPECT_EQ(full.code(), Code::kBusy);
  EXPECT_NE(full.to_string().find("has no room on channel"), std::string::npos);
  give_credit(3);
  EXPECT_TRUE(send("three").ok());
  EXPECT_EQ(path_.sent.size(), 3u);
  EXPECT_EQ(session().flow.messages_sent, 3u);
}

TEST_F(MessageDeskTest, MoreRoomIsNewsAndTheSameIsNot) {
  rig_.host.hints.clear();
  give_credit(2);
  give_credit(2);
  EXPECT_EQ(rig_.host.hints, std::vector{CompletionKind::kRoom});
  EXPECT_EQ(peer_->use().news.load(), 1u);
}

TEST_F(MessageDeskTest, CreditForMoreChannelsThanAnyMayOpenIsThePeersError) {
  for (std::uint32_t i = 0; i < kChannelsMax; ++i) {
    ASSERT_TRUE(desk_.on_credit(session(), {.channel = kFirstUserChannel + i, .limits = channel_window(1)}).ok()) << i;
  }
  EXPECT_EQ(
      desk_.on_credit(session(), {.channel = kFirstUserChannel + kChannelsMax, .limits = channel_window(1)}).code(),
      Code::kCorrupt);
}

TEST_F(MessageDeskTest, CreditForAServiceThatComesLaterIsKept) {
  constexpr std::uint32_t kItsChannel = kFirstUserChannel - 1;
  ASSERT_EQ(rig_.engine.services().of(kItsChannel), nullptr);
  EXPECT_TRUE(desk_.on_credit(session(), {.channel = kItsChannel, .limits = channel_window(3)}).ok());
  EXPECT_TRUE(peer_->use().channels.is_open(kItsChannel));
  EXPECT_EQ(peer_->use().news.load(), 0u) << "it is nothing for users";
}

TEST_F(MessageDeskTest, PeersInSessionLearnOfTheChannelsOfAServiceThatComes) {
  const OwnChannel its[] = {{.id = kFirstUserChannel - 1, .window = 4, .priority = Priority::kBulk}};
  desk_.give_channels(its);
  rig_.turn();
  EXPECT_EQ(path_.kinds_sent(), std::vector{wire::SessionKind::kCredit});
}

TEST_F(MessageDeskTest, WhatComesGoesToTheInboxWithinTheCreditThatWasGiven) {
  ASSERT_TRUE(desk_.open_channel(kFirstUserChannel, 2).ok());
  rig_.turn();
  EXPECT_EQ(path_.kinds_sent(), std::vector{wire::SessionKind::kCredit});
  wire::Send message{
      .place = {.link = kLink}, .channel = kFirstUserChannel, .bytes = base::as_bytes(std::string_view("hello"))};
  EXPECT_TRUE(desk_.on_send(session(), message, rig_.now()).ok());
  EXPECT_TRUE(desk_.on_send(session(), message, rig_.now()).ok());
  EXPECT_EQ(desk_.on_send(session(), message, rig_.now()).code(), Code::kCorrupt);
  Message taken[4];
  EXPECT_EQ(rig_.inbox.take_messages(kFirstUserChannel, taken), 2u);
  desk_.release(session(), kFirstUserChannel, 2, 10);
  rig_.turn();  // The peer is told.
  EXPECT_TRUE(desk_.on_send(session(), message, rig_.now()).ok()) << "its places are free";
  EXPECT_EQ(desk_.on_send(session(), {.channel = kFirstUserChannel + 1}, rig_.now()).code(), Code::kCorrupt);
}

TEST_F(MessageDeskTest, AMessageByAnotherLinkThanItsChannelsIsThePeersError) {
  ASSERT_TRUE(desk_.open_channel(kFirstUserChannel, 8).ok());
  const auto code_of = [&](wire::Link link) {
    return desk_.on_send(session(), {.place = {.link = link}, .channel = kFirstUserChannel}, rig_.now()).code();
  };
  EXPECT_EQ(code_of(kLink), Code::kOk);
  EXPECT_EQ(code_of({Priority::kRealtime, kFirstUserChannel + 1}), Code::kCorrupt) << "of another group";
  EXPECT_EQ(code_of(Priority::kRealtime), Code::kCorrupt) << "the library's own";
  EXPECT_EQ(code_of(Priority::kBulk), Code::kCorrupt);
}

TEST_F(MessageDeskTest, AFullLinkHoldsWhatThreadsLeftOnOthersNotBack) {
  give_credit(8);
  const std::uint32_t other = kFirstUserChannel + 1;
  ASSERT_TRUE(desk_.on_credit(session(), {.channel = other, .limits = channel_window(8)}).ok());
  session().control_serial = 0;
  while (session().links.push(kLink, {}, base::as_bytes(std::string_view("full")))) continue;
  for (const std::uint32_t channel : {kFirstUserChannel, other}) {
    LeftOver left{.peer = peer_, .bytes = "left", .channel = channel, .epoch = peer_->use().channels.epoch()};
    session().unsent.push(std::move(left));
  }
  std::size_t work = 0;
  EXPECT_FALSE(desk_.pump_unsent(session(), &work));
  EXPECT_EQ(work, 1u);
  EXPECT_FALSE(session().unsent.has_none(kLink));
  EXPECT_TRUE(session().unsent.has_none({Priority::kRealtime, other}));
  EXPECT_EQ(session().links.next({Priority::kRealtime, other}).seq, 2u);
}

TEST_F(MessageDeskTest, WhatThreadsLeftGoesBeforeWhatIsSentLater) {
  give_credit(8);
  session().control_serial = 0;
  while (session().links.push(kLink, {}, base::as_bytes(std::string_view("full")))) continue;
  LeftOver left;
  left.kind = LeftOver::Kind::kMessage;
  left.peer = peer_;
  left.channel = kFirstUserChannel;
  left.bytes = "left";
  left.epoch = peer_->use().channels.epoch();
  desk_.take_left_over(std::move(left), rig_.now());
  EXPECT_EQ(session().unsent.count(), 1u);
  EXPECT_EQ(send("later").code(), Code::kBusy);
}

// Between the moment when the lane's holder took a place and that when it finds no room for the message.
TEST_F(MessageDeskTest, AMessageThatAThreadHasLeftOneBehindIsKept) {
  give_credit(std::uint64_t{1} << 30);
  session().control_serial = 0;
  while (session().links.push(kLink, {}, base::as_bytes(std::string_view("full")))) continue;
  std::atomic<bool> may_leave{true}, is_over{false};
  std::thread other([&] {
    ChannelCredits::Ticket ticket;
    while (!is_over) {
      if (!may_leave.exchange(false)) continue;
      static_cast<void>(
          peer_->use().channels.try_leave(kFirstUserChannel, 1, &ticket, [](const auto&) { return true; }));
    }
  });
  MessageDesk::Sending sending;
  const Instant until = Clock::steady().now() + 20s;
  while (session().unsent.count() == 0 && Clock::steady().now() < until) {
    sending = desk_.send(session(), kFirstUserChannel, base::as_bytes(std::string_view("mine")), rig_.now());
    if (sending) continue;
    peer_->use().channels.note_gone(kFirstUserChannel);  // What the other one left went, and it leaves the next one.
    may_leave = true;
  }
  is_over = true;
  other.join();
  ASSERT_EQ(session().unsent.count(), 1u)
      << "the two never met: " << (sending ? sending->error().to_string() : "nothing was taken");
  ASSERT_TRUE(sending && *sending) << "it was taken, and is sent later";
  EXPECT_EQ(peer_->use().channels.numbered(kFirstUserChannel).last, **sending + 1) << "it goes before the other's";
  EXPECT_EQ(peer_->use().channels.numbered(kFirstUserChannel).left, 2u);
}

TEST_F(MessageDeskTest, WhatBelongsToAnEarlierSessionIsDropped) {
  give_credit(8);
  LeftOver left;
  left.kind = LeftOver::Kind::kMessage;
  left.peer = peer_;
  left.channel = kFirstUserChannel;
  left.epoch = peer_->use().channels.epoch() + 1;
  desk_.take_left_over(std::move(left), rig_.now());
  EXPECT_TRUE(path_.sent.empty());
  EXPECT_EQ(session().unsent.count(), 0u);
}

TEST_F(MessageDeskTest, ANotificationToAPeerThatIsDownOrNotReachedIsNotTaken) {
  EXPECT_TRUE(desk_.notify(session(), "hello", rig_.now()).ok());
  rig_.engine.connector().set_unreached(session(), Status(Code::kDisconnected, "no path"));
  EXPECT_EQ(desk_.notify(session(), "hello", rig_.now()).message(), "no path");
  peer_->state = PeerState::kDown;
  EXPECT_EQ(desk_.notify(session(), "hello", rig_.now()).message(), "there is down");
  EXPECT_EQ(session().flow.notifications_sent, 1u);
}

}  // namespace
}  // namespace hawser::agent
