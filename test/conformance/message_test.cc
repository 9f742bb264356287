// Messages: in order per peer and channel, within the credit that the receiver gave.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent_suite.h"
#include "base/bytes.h"

namespace hawser::conformance {
namespace {

constexpr std::uint32_t kChannel = 16;

Status send(const Peer& peer, std::uint32_t channel, std::string_view text) {
  return peer.send(channel, base::as_bytes(text)).error();
}

TEST_P(Conformance, MessagesKeepTheirOrder) {
  open_pair();
  const Peer peer = a_to_b();
  must(b().open_channel(kChannel, 8));
  constexpr int kCount = 2000;
  int sent = 0, got = 0;
  EXPECT_TRUE(env().eventually([&] {
    while (sent < kCount) {
      const Status status = send(peer, kChannel, "message " + std::to_string(sent));
      if (!status.ok()) {
        EXPECT_TRUE(says(status, Code::kBusy, {"send", "channel 16"}));
        break;
      }
      ++sent;
    }
    while (const auto message = b().take_message(kChannel)) {
      EXPECT_EQ(message->bytes, "message " + std::to_string(got));
      EXPECT_EQ(message->channel, kChannel);
      EXPECT_EQ(message->peer.incarnation(), a().incarnation());
      ++got;
    }
    return got == kCount;
  })) << "sent "
      << sent << ", got " << got;
  EXPECT_EQ(a().counters().total.messages_sent, static_cast<std::uint64_t>(kCount));
  EXPECT_EQ(b().counters().total.messages_received, static_cast<std::uint64_t>(kCount));
}

/// Sends `credit` messages, which the peer grants in its own time: a busy host may keep it from that for long. Then
/// sees that no more go.
void fill_channel(Environment& env, const Peer& peer, std::uint32_t channel, int credit) {
  int sent = 0;
  EXPECT_TRUE(env.eventually([&] {
    while (sent < credit && send(peer, channel, std::to_string(sent)).ok()) ++sent;
    return sent == credit;
  })) << sent
      << " went";
  for (int look = 0; look < 200; ++look) {
    EXPECT_EQ(send(peer, channel, "beyond the credit").code(), Code::kBusy);
    env.pass();
  }
}

TEST_P(Conformance, CreditBoundsAChannel) {
  open_pair();
  const Peer peer = a_to_b();
  must(b().open_channel(kChannel, 5));
  fill_channel(env(), peer, kChannel, 5);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(next_message(b(), kChannel).bytes, std::to_string(i));
  EXPECT_FALSE(b().take_message(kChannel));
  fill_channel(env(), peer, kChannel, 5);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(next_message(b(), kChannel).bytes, std::to_string(i));
}

TEST_P(Conformance, AFullChannelStopsNoOther) {
  open_pair();
  const Peer peer = a_to_b();
  must(b().open_channel(kChannel, 3));
  must(b().open_channel(kChannel + 1, 3));
  fill_channel(env(), peer, kChannel, 3);
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(env().eventually([&] { return send(peer, kChannel + 1, std::to_string(i)).ok(); }));
    EXPECT_EQ(next_message(b(), kChannel + 1).bytes, std::to_string(i));
  }
  must(peer.notify("and notifications pass"));
  EXPECT_EQ(next_notification(b()).text, "and notifications pass");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(next_message(b(), kChannel).bytes, std::to_string(i));
}

TEST_P(Conformance, MessagesOfEverySize) {
  open_pair();
  const Peer peer = a_to_b();
  must(b().open_channel(77, 4));
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{4096}, kMessageMax - 1,
                                 kMessageMax, std::size_t{3}}) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 11 + i / 97);
    EXPECT_TRUE(env().eventually([&] { return send(peer, 77, text).ok(); }));
    EXPECT_EQ(next_message(b(), 77).bytes, text) << size;
  }
}

TEST_P(Conformance, BothWaysAndManyChannels) {
  open_pair();
  const Peer to_b = a_to_b(), to_a = b_to_a();
  constexpr std::uint32_t kChannels = 20;
  for (std::uint32_t c = 0; c < kChannels; ++c) {
    must(b().open_channel(100 + c, 4, static_cast<Priority>(c % 3)));
    must(a().open_channel(200 + c, 4, static_cast<Priority>(c % 3)));
  }
  constexpr int kEach = 30;
  std::map<std::uint32_t, int> sent, got;
  const auto step = [&](const Peer& peer, Agent& reader, std::uint32_t channel) {
    if (sent[channel] < kEach && send(peer, channel, std::to_string(sent[channel])).ok()) ++sent[channel];
    if (const auto message = reader.take_message(channel)) {
      EXPECT_EQ(message->bytes, std::to_string(got[channel]++));
    }
    return got[channel] == kEach;
  };
  EXPECT_TRUE(env().eventually([&] {
    bool all = true;
    for (std::uint32_t c = 0; c < kChannels; ++c) {
      all = step(to_b, b(), 100 + c) && all;
      all = step(to_a, a(), 200 + c) && all;
    }
    return all;
  }));
}

/// Sends messages on three channels, each of another class, and compares what the agents say of them.
class Talk {
 public:
  Talk(Environment& env, Agent& reader) : env_(env), reader_(reader) {
    for (std::uint32_t i = 0; i < kChannels; ++i) {
      must(reader.open_channel(kChannel + i, 2000, static_cast<Priority>(i)));
    }
  }
  /// False: nothing was taken.
  bool send(const Peer& peer, std::uint64_t number) {
    const std::uint32_t which = number % kChannels;
    const std::string text(number % 11 == 0 ? 20'000 : number % 100, static_cast<char>('a' + number % 26));
    const Result<std::uint64_t> sent = peer.send(kChannel + which, base::as_bytes(text));
    if (!sent) return false;
    EXPECT_EQ(*sent, ++sent_[which]);
    return true;
  }
  void send_all(const Peer& peer, std::uint64_t count) {
    std::uint64_t sent = 0;
    EXPECT_TRUE(env_.eventually([&] {
      while (sent < count && send(peer, sent)) ++sent;
      return sent == count;
    })) << sent
        << " of " << count << " went";
  }
  bool is_all_acknowledged(const Peer& peer) const {
    bool all = true;
    for (std::uint32_t i = 0; i < kChannels; ++i) all = all && peer.acknowledged(kChannel + i) == sent_[i];
    return all;
  }
  /// What the reader's agent has taken, from now on also what it still takes.
  void read() {
    for (std::uint32_t i = 0; i < kChannels; ++i) {
      while (reader_.take_message(kChannel + i)) ++taken_[i];
    }
  }
  void check(const std::vector<Acknowledged>& told) {
    read();
    ASSERT_EQ(told.size(), kChannels);
    for (std::uint32_t i = 0; i < kChannels; ++i) {
      EXPECT_EQ(told[i].channel, kChannel + i);
      EXPECT_LE(told[i].number, taken_[i]) << "of " << sent_[i] << " on channel " << told[i].channel;
    }
  }

 private:
  static constexpr std::uint32_t kChannels = 3;
  Environment& env_;
  Agent& reader_;
  std::uint64_t sent_[kChannels] = {}, taken_[kChannels] = {};
};

TEST_P(Conformance, WhatThePeerHasTakenIsAcknowledged) {
  open_pair();
  const Peer peer = a_to_b();
  Talk talk(env(), b());
  EXPECT_TRUE(peer.acknowledged().empty());
  EXPECT_EQ(peer.acknowledged(kChannel), 0U);
  for (int round = 0; round < 5; ++round) {
    talk.send_all(peer, 90);
    EXPECT_TRUE(env().eventually([&] { return talk.is_all_acknowledged(peer); })) << round;
  }
  EXPECT_EQ(send(peer, kChannel, std::string(kMessageMax + 1, 'x')).code(), Code::kInvalid);
  talk.send_all(peer, 3);  // What was refused took no number.
  EXPECT_EQ(peer.acknowledged(kChannel + 99), 0U);
  EXPECT_TRUE(env().eventually([&] { return talk.is_all_acknowledged(peer); }));
  talk.check(peer.acknowledged());
}

TEST_P(Conformance, AnEndTellsWhatThePeerHadTaken) {
  HAWSER_NEEDS_TWO_AGENTS();
  for (const std::string how : {"closed", "forgotten", "forgets"}) {
    Agent* const reader = open(options("reader-" + how));
    const Peer peer = know(a_ == nullptr ? *(a_ = open(options("a"))) : a(), *reader);
    Talk talk(env(), *reader);
    talk.send_all(peer, 60);
    EXPECT_TRUE(env().eventually([&] { return talk.is_all_acknowledged(peer); }));
    for (std::uint64_t i = 0; i < 300; ++i) {
      (void)talk.send(peer, i);
      if (i % 16 == 15) env().pass();
    }
    if (how == "closed") {
      Status closed;
      env().blocking(*reader, [&] { closed = reader->close(kPatience); });
      must(closed);
    } else if (how == "forgotten") {
      must(a().invalidate(peer));
    } else {
      for (const Peer& back : reader->peers()) must(reader->invalidate(back));
    }
    std::optional<PeerEvent> down;
    EXPECT_TRUE(env().eventually([&] {
      while (auto event = a().take_event()) {
        if (event->kind == PeerEvent::Kind::kDown) down = std::move(event);
      }
      return down.has_value();
    })) << how;
    ASSERT_TRUE(down) << how;
    EXPECT_EQ(down->peer.incarnation(), peer.incarnation());
    pass(20);  // What is still on its way may come.
    talk.check(down->acknowledged);
    EXPECT_EQ(peer.acknowledged(), down->acknowledged) << "it stays known";
    for (const Acknowledged& each : down->acknowledged) EXPECT_GE(each.number, 20U) << "acknowledged once is for ever";
  }
}

TEST_P(Conformance, ClosedChannelsAndWrongCallsAreNamed) {
  open_pair();
  const Peer peer = meet();
  pass(20);
  EXPECT_TRUE(says(send(peer, 300, "x"), Code::kBusy, {"send", "channel 300", "opened"}));
  EXPECT_TRUE(says(send(peer, 15, "x"), Code::kInvalid, {"send", "channel 15", "16"}));
  EXPECT_TRUE(says(send(peer, 300, std::string(kMessageMax + 1, 'x')), Code::kInvalid, {"send", "65537", "65536"}));
  EXPECT_TRUE(says(Peer().send(16, {}).error(), Code::kInvalid, {"send", "empty"}));
  EXPECT_TRUE(says(b().open_channel(15), Code::kInvalid, {"open_channel", "15"}));
  EXPECT_TRUE(says(b().open_channel(16, 0), Code::kInvalid, {"open_channel", "credit 0"}));
  EXPECT_FALSE(b().take_message(300));
  must(b().open_channel(300));
  EXPECT_TRUE(env().eventually([&] { return send(peer, 300, "now").ok(); }));
  EXPECT_EQ(next_message(b(), 300).bytes, "now");
  must(b().open_channel(300));  // Again is no error and changes nothing.
  EXPECT_TRUE(says(b().open_channel(300, 64, Priority::kBulk), Code::kInvalid, {"open_channel", "300", "class"}));
  EXPECT_TRUE(
      says(b().open_channel(301, 64, static_cast<Priority>(3)), Code::kInvalid, {"open_channel", "priority 3"}));
}

TEST_P(Conformance, MessagesAndBulkShareThePeer) {
  open_pair();
  constexpr std::size_t kSize = 6 << 20;
  Area source = add(a(), "source", kSize), target = add(b(), "target", kSize);
  const Peer peer = meet();
  must(b().open_channel(kChannel, 16));
  fill(source.bytes, 1);
  const Plan plan = must(a().plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}));
  std::vector<Transfer> all;
  for (int i = 0; i < 4; ++i) all.push_back(must(plan.submit()));
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(env().eventually([&] { return send(peer, kChannel, std::to_string(i)).ok(); }));
    ASSERT_EQ(next_message(b(), kChannel).bytes, std::to_string(i));
  }
  for (Transfer& each : all) must(finish(each));
  EXPECT_TRUE(holds(target.bytes, 1));
}

TEST_P(Conformance, EachSideMayOpenManyChannels) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  constexpr std::uint32_t kMost = 1024, kTheirs = 100, kOurs = 5000;
  for (std::uint32_t i = 0; i < kMost; ++i) {
    must(a().open_channel(kOurs + i, 4));
    must(b().open_channel(kTheirs + i, 4));
  }
  must(a().open_channel(kOurs, 4));  // Once more is no other one.
  EXPECT_TRUE(says(a().open_channel(kOurs + kMost, 4), Code::kBusy, {"open_channel", "1024"}));
  const Peer to_b = a_to_b(), to_a = b_to_a();
  const auto goes = [&](Agent& receiver, const Peer& to, std::uint32_t channel) {
    EXPECT_TRUE(env().eventually([&] { return send(to, channel, "hello").ok(); })) << channel;
    return env().eventually([&] { return receiver.take_message(channel).has_value(); });
  };
  for (const std::uint32_t i : {0U, kMost - 1}) {
    EXPECT_TRUE(goes(b(), to_b, kTheirs + i));
    EXPECT_TRUE(goes(a(), to_a, kOurs + i));
  }
  EXPECT_EQ(to_b.state(), PeerState::kUp);
}

}  // namespace
}  // namespace hawser::conformance
