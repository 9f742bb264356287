// A session's messages: by its control path, each once, in order within a link.

#include "agent/engine/session_link.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class SessionLinkTest : public ::testing::Test {
 protected:
  bool push(std::string_view text, wire::Link link = Priority::kRealtime) {
    const wire::Send message{.place = session_.links.next(link), .channel = 20, .bytes = base::as_bytes(text)};
    HeadArray buffer;
    return link_.push(session_, link, wire::encode(message, buffer), base::as_bytes(text));
  }
  std::string text_of(const std::string& message) {
    return std::string(base::as_text(wire::decode_send(*wire::open_envelope(base::as_bytes(message)))->bytes));
  }

  Rig rig_;
  SessionLink link_{rig_.engine.sessions(), rig_.engine.ports()};
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
  HandPath& path_ = rig_.connect(peer_);
  Session& session_ = *peer_->session();
  std::size_t work_ = 0;
};

TEST_F(SessionLinkTest, WhatFindsNoRoomIsKeptAndSentInOrder) {
  path_.sent.clear();
  path_.message_room = 1;
  for (const std::string_view text : {"one", "two", "three"}) EXPECT_TRUE(push(text));
  EXPECT_EQ(path_.sent.size(), 1u);
  EXPECT_TRUE(rig_.engine.sessions().has_work());
  EXPECT_FALSE(SessionLink::pump(session_, &work_));
  path_.message_room = 10;
  EXPECT_TRUE(SessionLink::pump(session_, &work_));
  EXPECT_EQ(work_, 2u);
  ASSERT_EQ(path_.sent.size(), 3u);
  EXPECT_EQ(text_of(path_.sent[0]) + text_of(path_.sent[1]) + text_of(path_.sent[2]), "onetwothree");
}

TEST_F(SessionLinkTest, AnUrgentMessageOvertakesThoseThatWait) {
  path_.sent.clear();
  path_.message_room = 1;
  for (const std::string_view text : {"bulk 1 ", "bulk 2 ", "bulk 3 "}) EXPECT_TRUE(push(text, Priority::kBulk));
  EXPECT_TRUE(push("usual ", Priority::kRealtime));
  EXPECT_TRUE(push("urgent ", Priority::kCritical));
  path_.message_room = 10;
  EXPECT_TRUE(SessionLink::pump(session_, &work_));
  std::string all;
  for (const std::string& message : path_.sent) all += text_of(message);
  EXPECT_EQ(all, "bulk 1 urgent usual bulk 2 bulk 3 ");
}

TEST_F(SessionLinkTest, AFullClassHoldsNoOtherBack) {
  path_.message_room = 0;
  while (push("bulk", Priority::kBulk)) continue;
  EXPECT_TRUE(push("urgent", Priority::kCritical));
  path_.sent.clear();
  path_.message_room = 1;
  EXPECT_FALSE(SessionLink::pump(session_, &work_));
  ASSERT_EQ(path_.sent.size(), 1u);
  EXPECT_EQ(text_of(path_.sent.front()), "urgent");
}

TEST_F(SessionLinkTest, ALinkWithoutRoomHoldsOthersUpOnlyWhereTheyShareIt) {
  const wire::Link one(Priority::kRealtime, 16), other(Priority::kRealtime, 17);
  for (const bool has_queues : {false, true}) {
    path_.has_queues = has_queues;
    path_.full_links = {one.index()};
    path_.message_room = 10;
    path_.sent.clear();
    EXPECT_TRUE(push("one ", one));
    EXPECT_TRUE(push("other ", other));
    EXPECT_TRUE(push("bulk ", Priority::kBulk));
    EXPECT_FALSE(SessionLink::pump(session_, &work_));
    EXPECT_EQ(path_.sent.size(), has_queues ? 2u : 0u) << "small ones would pass it for ever";
    path_.full_links.clear();
    EXPECT_TRUE(SessionLink::pump(session_, &work_));
    EXPECT_EQ(path_.sent.size(), 3u);
  }
}

TEST_F(SessionLinkTest, EachClassIsAcknowledgedByItself) {
  HeadArray buffer;
  for (const Priority priority : {Priority::kBulk, Priority::kCritical}) {
    const auto bytes =
        wire::encode(wire::Send{.place = {.link = priority, .seq = 1}, .channel = 20, .bytes = {}}, buffer);
    ASSERT_TRUE(*link_.receive(session_, session_.control(), *wire::open_envelope(bytes), bytes.size()));
    link_.note_read(session_, priority, rig_.now());
  }
  path_.sent.clear();
  EXPECT_TRUE(SessionLink::pump_ack(session_, rig_.now() + 50us, &work_));
  ASSERT_EQ(path_.sent.size(), 2u);
  const auto ack = [&](std::size_t i) {
    return *wire::decode_ack(*wire::open_envelope(base::as_bytes(path_.sent[i])));
  };
  EXPECT_EQ(ack(0).link, Priority::kCritical);
  EXPECT_EQ(ack(1).link, Priority::kBulk);
  EXPECT_EQ(session_.ack_since, Instant::max());
}

TEST_F(SessionLinkTest, WithoutAPathMessagesWaitUntilTooManyDo) {
  session_.control_serial = 0;
  int taken = 0;
  while (push("waits") && taken < 10'000) ++taken;
  EXPECT_EQ(taken, 4096);
  EXPECT_FALSE(SessionLink::send_plain(session_, Priority::kRealtime, {}, {}));
}

TEST_F(SessionLinkTest, AMessageIsReadOnceAndAGapIsThePeersError) {
  HeadArray buffer;
  const auto receive = [&](std::uint64_t seq) {
    const auto bytes = wire::encode(
        wire::Send{.place = {.link = Priority::kRealtime, .seq = seq}, .channel = 20, .bytes = {}}, buffer);
    return link_.receive(session_, session_.control(), *wire::open_envelope(bytes), bytes.size());
  };
  const std::uint64_t carried = session_.control()->carried;
  EXPECT_TRUE(*receive(1));
  EXPECT_FALSE(*receive(1));
  EXPECT_EQ(receive(3).error().code(), Code::kCorrupt);
  EXPECT_EQ(session_.control()->carried, carried + 3);
}

TEST_F(SessionLinkTest, AnAcknowledgementWaitsFiftyMicrosecondsForCompany) {
  HeadArray buffer;
  const auto bytes =
      wire::encode(wire::Send{.place = {.link = Priority::kRealtime, .seq = 1}, .channel = 20, .bytes = {}}, buffer);
  ASSERT_TRUE(*link_.receive(session_, session_.control(), *wire::open_envelope(bytes), bytes.size()));
  link_.note_read(session_, Priority::kRealtime, rig_.now());
  path_.sent.clear();
  EXPECT_TRUE(SessionLink::pump_ack(session_, rig_.now() + 50us - 1ns, &work_));
  EXPECT_TRUE(path_.sent.empty());
  EXPECT_TRUE(SessionLink::pump_ack(session_, rig_.now() + 50us, &work_));
  EXPECT_EQ(path_.kinds_sent(), std::vector{wire::SessionKind::kAck});
  EXPECT_TRUE(SessionLink::pump_ack(session_, rig_.now() + 1s, &work_));
  EXPECT_EQ(path_.sent.size(), 1u) << "one is enough";
}

TEST_F(SessionLinkTest, WordOfChunksToComeAndAcknowledgementsGoAside) {
  path_.aside = 0;
  EXPECT_TRUE(push("somebody waits"));
  EXPECT_EQ(path_.aside, 0u);
  HeadArray buffer;
  const wire::Arrive arrive{.place = session_.links.next(Priority::kRealtime), .transfer = 7, .chunks = 1};
  EXPECT_TRUE(link_.push(session_, Priority::kRealtime, wire::encode(arrive, buffer), {}));
  EXPECT_EQ(path_.aside, 1u);
  const wire::Ack ack{.link = Priority::kRealtime, .up_to = 1};
  EXPECT_TRUE(SessionLink::send_plain(session_, Priority::kRealtime, wire::encode(ack, buffer), {}));
  EXPECT_EQ(path_.aside, 2u);
}

TEST_F(SessionLinkTest, AnAcknowledgementRidesWithWhatWaited) {
  HeadArray buffer;
  path_.message_room = 0;
  EXPECT_TRUE(push("waits"));
  const auto bytes =
      wire::encode(wire::Send{.place = {.link = Priority::kRealtime, .seq = 1}, .channel = 20, .bytes = {}}, buffer);
  ASSERT_TRUE(*link_.receive(session_, session_.control(), *wire::open_envelope(bytes), bytes.size()));
  path_.sent.clear();
  path_.message_room = 1;
  EXPECT_TRUE(SessionLink::pump(session_, &work_));
  const auto sent = wire::open_envelope(base::as_bytes(path_.sent.front()));
  EXPECT_EQ(sent->acked.up_to, 1u);
  EXPECT_FALSE(session_.links.ack_due(true));
}

}  // namespace
}  // namespace hawser::agent
