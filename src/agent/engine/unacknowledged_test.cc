// Which messages a peer is known to have taken, over paths that keep them and paths that do not.

#include "agent/engine/unacknowledged.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

constexpr std::uint32_t kFirstOne = wire::kUserChannelMin, kOtherOne = kFirstOne + 1, kNextOne = kFirstOne + 2;
constexpr wire::Link kFirstLink{Priority::kRealtime, kFirstOne};

class Unacknowledged : public ::testing::Test {
 protected:
  void open(bool is_lossless, bool second_is_lossless = false) {
    rig_.emplace(backend::Traits{.lossless = is_lossless}, backend::Traits{.lossless = second_is_lossless});
    path_ = &rig_->connect(peer_);
    give_credit(kFirstOne);
    give_credit(kOtherOne, Priority::kBulk);
  }
  Session& session() { return *peer_->session(); }
  void give_credit(std::uint32_t channel, Priority priority = Priority::kRealtime) {
    const wire::Credit credit{.channel = channel, .priority = priority, .limits = channel_window(100)};
    ASSERT_TRUE(rig_->engine.messages().on_credit(session(), credit).ok());
  }
  std::uint64_t send(std::uint32_t channel, std::string_view text = "text") {
    const auto sent = rig_->engine.messages().send(session(), channel, base::as_bytes(text), rig_->now());
    return sent && *sent ? **sent : 0;
  }
  void leave(std::uint32_t channel) {
    LeftOver left{.peer = peer_, .bytes = "left", .kind = LeftOver::Kind::kMessage, .channel = channel};
    ChannelCredits::Ticket ticket;
    const auto push = [](const auto&) { return true; };
    ASSERT_EQ(peer_->use().channels.try_leave(channel, 4, &ticket, push), ChannelCredits::Taken::kYes);
    left.priority = ticket.priority;
    left.epoch = ticket.epoch;
    rig_->engine.messages().take_left_over(std::move(left), rig_->now());
  }
  static wire::Place place_of(const std::string& message) {
    return wire::open_envelope(base::as_bytes(message))->place;
  }
  /// The peer has taken all up to this message, and says so.
  void acknowledge(const std::string& message) {
    const wire::Place place = place_of(message);
    rig_->receive(rig_->first, *path_, wire::Ack{.link = place.link, .up_to = place.seq});
  }
  /// A path of the second backend, on which the peer says what it has.
  HandPath& go_on_by_second(const proto::LinkSet::Numbers& received) {
    HandPath& path = *rig_->second.port->make();
    rig_->come_up(rig_->second, path, *peer_, 2);
    wire::Welcome welcome{.session = 77, .peer_session = session().number, .received = received};
    welcome.notify = {.messages = wire::kNoMessageLimit, .bytes = 1 << 20};
    rig_->receive(rig_->second, path, welcome, wire::encode_credits({}));
    rig_->turn();
    return path;
  }
  /// Up to which message the peer has all of kFirstLink, and all of others.
  proto::LinkSet::Numbers all_but(std::uint64_t of_first) {
    proto::LinkSet::Numbers all;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = session().links.next(wire::Link::at(i)).seq - 1;
    all[kFirstLink.index()] = of_first;
    return all;
  }
  /// The messages of users among those that were sent, by what is in them.
  static std::string texts(const HandPath& path) {
    std::string all;
    for (const std::string& each : path.sent) {
      const auto envelope = wire::open_envelope(base::as_bytes(each));
      if (envelope->kind != wire::SessionKind::kSend) continue;
      all += std::string(base::as_text(wire::decode_send(*envelope)->bytes)) + ' ';
    }
    return all;
  }
  void lose_path() { rig_->go_down(rig_->first, *path_, Status(Code::kDisconnected, "cut").with_scope(Scope::kPath)); }
  std::vector<Acknowledged> when_down() {
    const Status dead = Status(Code::kDisconnected, "it died").with_scope(Scope::kPeer);
    if (!path_->is_down) rig_->go_down(rig_->first, *path_, dead);
    return told_when_down();
  }
  std::vector<Acknowledged> told_when_down() {
    while (const auto event = rig_->inbox.take_event()) {
      if (event->kind == PeerEvent::Kind::kDown) return event->acknowledged;
      EXPECT_TRUE(event->acknowledged.empty());
    }
    ADD_FAILURE() << "it is not down";
    return {};
  }
  using All = std::vector<Acknowledged>;

  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
  std::optional<Rig> rig_;
  HandPath* path_ = nullptr;
};

TEST_F(Unacknowledged, OfAPathThatKeepsMessagesThePeersWordCounts) {
  open(false);
  EXPECT_EQ(acknowledged_of(session()), All{}) << "nothing was sent";
  std::vector<std::string> ones;
  for (std::uint64_t number = 1; number <= 3; ++number) {
    EXPECT_EQ(send(kFirstOne), number);
    ones.push_back(path_->sent.back());
    ASSERT_TRUE(rig_->engine.messages().notify(session(), "of the same class", rig_->now()).ok());
  }
  EXPECT_EQ(send(kOtherOne), 1u);
  const std::string other = path_->sent.back();
  EXPECT_EQ(acknowledged_of(session()), (All{{kFirstOne, 0}, {kOtherOne, 0}}));
  acknowledge(ones[1]);
  EXPECT_EQ(acknowledged_of(session()), (All{{kFirstOne, 2}, {kOtherOne, 0}}));
  EXPECT_EQ(acknowledged_on(session(), kFirstOne), 2u);
  acknowledge(other);
  EXPECT_EQ(acknowledged_of(session()), (All{{kFirstOne, 2}, {kOtherOne, 1}}));
  EXPECT_EQ(when_down(), (All{{kFirstOne, 2}, {kOtherOne, 1}}));
  EXPECT_TRUE(path_->stopped_taking);
}

TEST_F(Unacknowledged, ChannelsOfOneClassCountByTheirOwnLinks) {
  open(false);
  give_credit(kNextOne);
  EXPECT_EQ(send(kFirstOne), 1u);
  const std::string first = path_->sent.back();
  EXPECT_EQ(send(kNextOne), 1u);
  const std::string next = path_->sent.back();
  EXPECT_EQ(place_of(first).seq, place_of(next).seq);
  acknowledge(next);
  EXPECT_EQ(acknowledged_of(session()), (All{{kFirstOne, 0}, {kNextOne, 1}}));
  acknowledge(first);
  EXPECT_EQ(acknowledged_of(session()), (All{{kFirstOne, 1}, {kNextOne, 1}}));
}

TEST_F(Unacknowledged, OfAPathWithoutLossItsOwnWordCounts) {
  open(true);
  path_->taken = path_->sent.size();
  EXPECT_EQ(send(kFirstOne), 1u);
  EXPECT_EQ(send(kOtherOne), 1u);
  EXPECT_EQ(send(kFirstOne, std::string(1000, 'x')), 2u);
  EXPECT_EQ(acknowledged_of(session()), (All{{kFirstOne, 0}, {kOtherOne, 0}}));
  path_->taken += 2;
  EXPECT_EQ(acknowledged_of(session()), (All{{kFirstOne, 1}, {kOtherOne, 1}}));
  path_->taken += 1;
  EXPECT_EQ(acknowledged_on(session(), kFirstOne), 2u);
  EXPECT_EQ(send(kFirstOne), 3u);
  EXPECT_EQ(when_down(), (All{{kFirstOne, 2}, {kOtherOne, 1}}));
}

TEST_F(Unacknowledged, WhatHasNoRoomOnThePathWasNotTaken) {
  open(true);
  path_->taken = path_->sent.size();
  path_->message_room = 1;
  EXPECT_EQ(send(kFirstOne), 1u);
  EXPECT_EQ(send(kFirstOne), 2u);
  path_->taken = path_->sent.size();
  EXPECT_EQ(acknowledged_on(session(), kFirstOne), 1u);
  path_->message_room = 9;
  rig_->turn();
  EXPECT_EQ(acknowledged_on(session(), kFirstOne), 1u) << "it went, and nobody took it";
  path_->taken = path_->sent.size();
  EXPECT_EQ(acknowledged_on(session(), kFirstOne), 2u);
}

TEST_F(Unacknowledged, WhatThreadsLeftWasNotTaken) {
  open(true);
  EXPECT_EQ(send(kFirstOne), 1u);
  path_->message_room = 0;
  while (session().links.push(kFirstLink, {}, base::as_bytes(std::string_view("full")))) continue;
  leave(kFirstOne);
  EXPECT_EQ(session().unsent.count(), 1u);
  EXPECT_EQ(send(kFirstOne), 0u) << "behind it";
  path_->taken = path_->sent.size();
  EXPECT_EQ(acknowledged_of(session()), (All{{kFirstOne, 1}}));
  EXPECT_EQ(when_down(), (All{{kFirstOne, 1}}));
}

TEST_F(Unacknowledged, APathThatDoesNotKnowClaimsNothing) {
  open(true);
  EXPECT_EQ(send(kFirstOne), 1u);
  path_->taken = path_->sent.size();
  path_->knows_untaken = false;
  EXPECT_EQ(acknowledged_on(session(), kFirstOne), 0u);
  EXPECT_EQ(when_down(), (All{{kFirstOne, 0}}));
}

TEST_F(Unacknowledged, ALostPathsWordStaysUntilThePeerGreets) {
  open(true);
  path_->taken = path_->sent.size();
  for (std::uint64_t number = 1; number <= 3; ++number) EXPECT_EQ(send(kFirstOne), number);
  path_->taken += 1;
  proto::LinkSet::Numbers all;
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = session().links.next(wire::Link::at(i)).seq - 1;
  lose_path();
  EXPECT_EQ(acknowledged_on(session(), kFirstOne), 1u) << "two are adrift";
  go_on_by_second(all);
  ASSERT_NE(session().control(), nullptr);
  EXPECT_EQ(acknowledged_on(session(), kFirstOne), 3u) << "the peer says that it has them";
  EXPECT_EQ(session().adrift, nullptr);
  EXPECT_EQ(send(kFirstOne), 4u) << "the session is the same";
  EXPECT_EQ(acknowledged_on(session(), kFirstOne), 3u) << "this path keeps it";
}

/// Whether the next path may lose messages or not.
class LostPath : public Unacknowledged, public ::testing::WithParamInterface<bool> {};

TEST_P(LostPath, WhatItHeldGoesByTheNextOne) {
  const bool second_is_lossless = GetParam();
  open(true, second_is_lossless);
  path_->taken = path_->sent.size();
  for (const char* text : {"one", "two", "three"}) EXPECT_NE(send(kFirstOne, text), 0u);
  EXPECT_NE(send(kOtherOne, "other"), 0u);
  path_->taken += 1;
  path_->message_room = 0;
  EXPECT_EQ(send(kFirstOne, "four"), 4u) << "no room";
  lose_path();
  EXPECT_EQ(acknowledged_of(session()), (All{{kFirstOne, 1}, {kOtherOne, 0}}));
  EXPECT_EQ(session().adrift, nullptr) << "the links keep them";
  EXPECT_EQ(send(kFirstOne, "five"), 5u) << "the session goes on";
  // The peer reads on in the lost path's memory, and had the second one before it greeted.
  proto::LinkSet::Numbers received = all_but(2);
  received[wire::Link(Priority::kBulk, kOtherOne).index()] = 0;
  HandPath& next = go_on_by_second(received);
  EXPECT_EQ(texts(next), "three four five other ");
  EXPECT_EQ(acknowledged_of(session()), (All{{kFirstOne, 2}, {kOtherOne, 0}}));
  EXPECT_EQ(session().links.keeps_any(), !second_is_lossless);
  next.taken = next.sent.size();
  if (second_is_lossless) {
    EXPECT_EQ(acknowledged_of(session()), (All{{kFirstOne, 5}, {kOtherOne, 1}}));
  }
  while (const auto event = rig_->inbox.take_event()) EXPECT_NE(event->kind, PeerEvent::Kind::kDown);
}
INSTANTIATE_TEST_SUITE_P(Kinds, LostPath, ::testing::Bool());

// The peer wrote it, read the lost path's ring, and only then it came.
TEST_F(Unacknowledged, AnOldWelcomeDoesNotHideWhatThePeerTookFromTheLostPath) {
  open(true);
  path_->taken = path_->sent.size();
  for (const char* text : {"one", "two", "three"}) EXPECT_NE(send(kFirstOne, text), 0u);
  path_->taken += 2;
  lose_path();
  EXPECT_EQ(texts(go_on_by_second(all_but(0))), "three ");
  EXPECT_NE(session().control(), nullptr);
}

TEST_F(Unacknowledged, TheNextPathMayBeLostBeforeThePeerTookAnything) {
  open(true, true);
  path_->taken = path_->sent.size();
  for (const char* text : {"one", "two", "three"}) EXPECT_NE(send(kFirstOne, text), 0u);
  lose_path();
  HandPath& second = go_on_by_second(all_but(0));
  EXPECT_EQ(texts(second), "one two three ");
  second.taken = second.sent.size() - 1;
  rig_->go_down(rig_->second, second, Status(Code::kDisconnected, "cut").with_scope(Scope::kPath));
  HandPath& third = go_on_by_second(all_but(2));
  EXPECT_EQ(texts(third), "three ");
  EXPECT_EQ(acknowledged_on(session(), kFirstOne), 2u);
}

TEST_F(Unacknowledged, ASessionThatCannotGoOnTellsWhatThePeerSaid) {
  open(true);
  path_->taken = path_->sent.size();
  for (std::uint64_t number = 1; number <= 3; ++number) EXPECT_EQ(send(kFirstOne), number);
  path_->is_partly_gone = path_->sent.size();
  lose_path();
  EXPECT_EQ(acknowledged_on(session(), kFirstOne), 0u) << "three are adrift";
  go_on_by_second(all_but(2));
  EXPECT_EQ(told_when_down(), (All{{kFirstOne, 2}}));
}

}  // namespace
}  // namespace hawser::agent
