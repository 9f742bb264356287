// Messages of sessions, each handed to whom it is for. A peer that breaks the rules is dropped.

#include "agent/engine/session_reader.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class SessionReaderTest : public ::testing::Test {
 protected:
  bool is_dropped() const { return peer_->state.load() == PeerState::kDown; }
  void receive_raw(std::string_view bytes) {
    rig_.messages.emplace_back(bytes);
    backend::PortEvent event;
    event.kind = backend::PortEvent::Kind::kMessage;
    event.path = &path_;
    event.bytes = base::as_bytes(rig_.messages.back());
    rig_.first.port->events.push_back(std::move(event));
    rig_.turn();
  }

  Rig rig_;
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
  HandPath& path_ = rig_.connect(peer_);
};

TEST_F(SessionReaderTest, EachKindReachesItsMember) {
  ASSERT_TRUE(rig_.engine.messages().open_channel(20, 4).ok());
  rig_.receive(rig_.first, path_,
               wire::Send{.place = {.link = {Priority::kRealtime, 20}, .seq = 1}, .channel = 20, .bytes = {}}, "hello");
  wire::Arrive arrive{.place = {.link = Priority::kRealtime, .seq = 1}};
  arrive.notify = base::as_bytes(std::string_view("hi"));
  rig_.receive(rig_.first, path_, arrive, "hi");
  path_.sent.clear();
  rig_.receive(rig_.first, path_, wire::CardRequest{.place = {.link = Priority::kRealtime, .seq = 2}});
  rig_.turn();
  EXPECT_FALSE(is_dropped());
  Message message;
  EXPECT_EQ(rig_.inbox.take_messages(20, {&message, 1}), 1u);
  EXPECT_TRUE(rig_.inbox.has_notifications());
  const auto kinds = path_.kinds_sent();
  EXPECT_NE(std::ranges::find(kinds, wire::SessionKind::kCardPart), kinds.end());
}

TEST_F(SessionReaderTest, AMessageThatComesTwiceIsReadOnce) {
  ASSERT_TRUE(rig_.engine.messages().open_channel(20, 4).ok());
  for (int i = 0; i < 2; ++i)
    rig_.receive(rig_.first, path_,
                 wire::Send{.place = {.link = {Priority::kRealtime, 20}, .seq = 1}, .channel = 20, .bytes = {}},
                 "hello");
  EXPECT_EQ(peer_->session()->flow.messages_received, 1u);
  EXPECT_FALSE(is_dropped());
}

TEST_F(SessionReaderTest, AGoodbyeEndsTheSession) {
  constexpr std::string_view kWhy = "closed";
  rig_.receive(rig_.first, path_, wire::Bye{.code = Code::kDisconnected, .text = kWhy}, kWhy);
  EXPECT_TRUE(is_dropped());
}

TEST_F(SessionReaderTest, ARefusalEndsItAndIsToldAsSuch) {
  constexpr std::string_view kWhy = "limits.peers = 1";
  rig_.receive(rig_.first, path_, wire::Bye{.code = Code::kBusy, .text = kWhy}, kWhy);
  EXPECT_TRUE(is_dropped());
  Status cause;
  while (const auto event = rig_.inbox.take_event()) cause = event->cause;
  EXPECT_EQ(cause.code(), Code::kBusy) << cause.to_string();
  EXPECT_NE(cause.message().find(kWhy), std::string_view::npos) << cause.to_string();
}

TEST_F(SessionReaderTest, GarbageEndsIt) {
  receive_raw("\xff\xff\xff garbage");
  EXPECT_TRUE(is_dropped());
}

TEST_F(SessionReaderTest, AGapEndsIt) {
  rig_.receive(rig_.first, path_, wire::CardRequest{.place = {.link = Priority::kRealtime, .seq = 2}});
  EXPECT_TRUE(is_dropped());
}

TEST_F(SessionReaderTest, AnAcknowledgementOfWhatWasNeverSentEndsIt) {
  rig_.receive(rig_.first, path_, wire::Ack{.up_to = 1000});
  EXPECT_TRUE(is_dropped());
}

}  // namespace
}  // namespace hawser::agent
