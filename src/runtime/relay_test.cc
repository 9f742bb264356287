// Relays by hand: a net of them whose messages go when the test says, in an order by chance, and whose ranks die.

#include "runtime/relay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/peer_core.h"
#include "agent/session.h"
#include "base/bytes.h"
#include "base/inside.h"
#include "base/rng.h"
#include "runtime/rank_bitmap.h"
#include "wire/session.h"

namespace hawser::runtime {
namespace {

using agent::Sent;
using wire::RelayKind;
using wire::RelayMessage;

constexpr Instant kNetNow = Instant::from_ns(1'000'000);
/// As a session ends whose peer's end is proven, and as one ends that heard nothing.
const Status kDied = Status(Code::kDisconnected, "it died").because(Status(Code::kDisconnected, "its process ended"));
const Status kSilent = Status(Code::kDisconnected, "it is silent").because(Status(Code::kTimedOut, "for 5 s"));
constexpr std::size_t kCredit = 8;  ///< Messages of one channel from a rank to a neighbour that it has not taken.

/// One rank: its relay, and what it knows of the others.
class Node final : public agent::Carrier {
 public:
  Node(std::uint32_t rank, std::uint32_t size, const Topology& topology)
      : relay(*this, {.world = "w", .rank = rank, .size = size, .topology = topology}), to(size) {
    for (std::uint32_t each = 0; each < size; ++each) {
      const base::Id128 id{1, each};
      cores.push_back(std::make_shared<agent::PeerCore>(std::weak_ptr<agent::Core>(), "w." + std::to_string(each), id));
      cores.back()->is_self = each == rank;
      peers.emplace_back(cores.back());
    }
  }
  ~Node() {
    for (const auto& core : cores) core->use().session.reset();
  }

  Sent carry(agent::Session& session, std::uint32_t channel, std::span<const std::byte> head,
             std::span<const std::byte> body) override {
    auto& queue = to[rank_of(session)];
    if (std::cmp_greater_equal(std::ranges::count(queue, channel, &Message::channel), kCredit)) return Sent::kNoCredit;
    queue.push_back({channel, std::string(base::as_text(head)) + std::string(base::as_text(body))});
    return Sent::kYes;
  }
  void release_message(agent::Session&, std::uint32_t, std::size_t) override {}
  void serve(agent::Session&, Instant) override {}
  agent::Session* session_with(const Peer& peer, Status* why) override {
    const std::shared_ptr<agent::PeerCore>& core = core_of(peer);
    if (down.contains(static_cast<std::uint32_t>(core->incarnation.lo))) {
      *why = Status(Code::kDisconnected, "down");
      return nullptr;
    }
    if (core->session() == nullptr) {
      core->use().session = std::make_unique<agent::Session>(core, proto::NotifyLimits{}, inbox, services);
    }
    return core->session();
  }
  bool can_fetch(agent::Session&) const override { return false; }
  bool fetch(agent::Session&, std::uint64_t, std::span<std::byte>) override { return false; }
  Instant now() const override { return kNetNow; }
  void note_deadline() override {}
  void note_end() override {}

  static std::uint32_t rank_of(const agent::Session& session) {
    return static_cast<std::uint32_t>(session.peer->incarnation.lo);
  }

  struct Message {
    std::uint32_t channel = 0;
    std::string bytes;
  };
  agent::Inbox inbox{16};
  Relay relay;
  std::array<agent::Service*, 1> services{&relay};
  std::vector<std::shared_ptr<agent::PeerCore>> cores;  ///< By rank.
  std::vector<Peer> peers;
  std::vector<std::deque<Message>> to;  ///< By rank: on their way.
  std::set<std::uint32_t> down;
};

class Net {
 public:
  Net(std::uint32_t size, const Topology& topology, std::uint64_t seed) : rng(seed) {
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      nodes.push_back(std::make_unique<Node>(rank, size, topology));
      nodes.back()->relay.share_place();
    }
    for (const auto& node : nodes) {
      Status why;
      for (const std::uint32_t rank : node->relay.neighbours()) (void)node->session_with(node->peers[rank], &why);
      node->relay.enter(node->peers, kNetNow);
    }
  }

  ~Net() {  // Those of dead ranks have no end of their own.
    for (const auto& [rank, operation] : operations) {
      nodes[rank]->relay.mailbox()->stop(*operation, Status(Code::kCancelled, "the test is over"), kNetNow);
    }
  }

  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes.size()); }
  /// Each class has a tag: two streams of one pair of ranks may have different classes.
  static std::uint64_t tag_of(Priority priority) { return 7 + wire::index_of(priority); }
  bool lives(std::uint32_t rank) const { return !dead.contains(rank); }

  /// The rank says all that it can.
  void pump(std::uint32_t rank) {
    for (std::uint32_t other = 0; other < size(); ++other) {
      agent::Session* const session = nodes[rank]->cores[other]->session();
      std::size_t work = 0;
      if (session != nullptr && lives(other)) (void)nodes[rank]->relay.pump(*session, &work);
    }
  }
  void deliver(std::uint32_t from, std::uint32_t to) {
    auto& queue = nodes[from]->to[to];
    if (queue.empty() || !lives(to)) return;
    if (cut_links.contains(link_of(from, to))) return queue.clear();
    // The next one of a channel: classes overtake one another.
    const std::uint32_t channel = queue[rng.below(queue.size())].channel;
    const auto next = std::ranges::find(queue, channel, &Node::Message::channel);
    const Node::Message message = std::move(*next);
    queue.erase(next);
    Status why;
    agent::Session* const session = nodes[to]->session_with(nodes[to]->peers[from], &why);
    if (session == nullptr) return;
    const Status heard = nodes[to]->relay.on_message(*session, message.channel, base::as_bytes(message.bytes), kNetNow);
    EXPECT_TRUE(heard.ok()) << heard.to_string();
  }
  /// One thing by chance: a message comes, a rank speaks, or a neighbour finds out that one is dead.
  void step() {
    const auto rank = static_cast<std::uint32_t>(rng.below(size()));
    const auto other = static_cast<std::uint32_t>(rng.below(size()));
    if (!lives(rank)) return;
    if (lives(other) && cut_links.contains(link_of(rank, other)) && rng.chance(0.2)) return find(rank, other, kSilent);
    if (lives(other)) return rng.chance(0.5) ? pump(rank) : deliver(rank, other);
    if (!nodes[other]->to[rank].empty() && rng.chance(0.5)) return find_dead_word(other, rank);
    find(rank, other);
  }
  /// What the dead one had sent to the kernel may still come.
  void find_dead_word(std::uint32_t from, std::uint32_t to) {
    auto& queue = nodes[from]->to[to];
    if (!nodes[to]->down.contains(from)) deliver(from, to);
    if (nodes[to]->down.contains(from)) queue.clear();
  }
  void find(std::uint32_t rank, std::uint32_t other, const Status& why = kDied) {
    Node& node = *nodes[rank];
    agent::Session* const session = node.cores[other]->session();
    if (session == nullptr || !node.down.insert(other).second) return;
    node.relay.end(*session, why);
  }
  bool is_lost(std::uint32_t at, std::uint32_t other) {
    Status why;
    return nodes[at]->relay.session_with(nodes[at]->peers[other], &why) == nullptr;
  }
  void kill(std::uint32_t rank) { dead.insert(rank); }
  /// Neither hears the other any more. Each finds it out at a moment of its own.
  void cut(std::uint32_t one, std::uint32_t other) { cut_links.insert(link_of(one, other)); }
  /// Until nothing happens any more.
  void settle() {
    for (int quiet = 0; quiet < 2; ++quiet) {
      for (std::uint32_t rank = 0; rank < size(); ++rank) {
        if (!lives(rank)) continue;
        for (const std::uint32_t other : dead) find(rank, other);
        for (const auto& [one, other] : cut_links) {
          if (one == rank || other == rank) find(rank, one == rank ? other : one, kSilent);
        }
        pump(rank);
        for (std::uint32_t other = 0; other < size(); ++other) {
          if (!nodes[rank]->to[other].empty() && lives(other)) quiet = 0;
          while (!nodes[rank]->to[other].empty() && lives(other)) deliver(rank, other);
        }
      }
    }
  }

  std::shared_ptr<Send> send(std::uint32_t from, std::uint32_t to, std::span<const std::byte> bytes,
                             Priority priority = Priority::kBulk) {
    auto made = std::make_shared<Send>();
    made->to = nodes[from]->peers[to];
    made->envelope = {.world = 1, .use = wire::MessageUse::kUser, .tag = tag_of(priority), .bytes = bytes.size()};
    made->data = bytes.data();
    made->priority = priority;
    made->self = made;
    operations.emplace_back(from, made);
    nodes[from]->relay.mailbox()->start(*made, Instant::max(), kNetNow);
    return made;
  }
  std::shared_ptr<Receive> receive(std::uint32_t at, std::uint32_t from, Priority priority = Priority::kBulk) {
    auto made = std::make_shared<Receive>();
    made->pattern = {.world = 1, .source = source_of(nodes[at]->peers[from]), .tag = tag_of(priority)};
    made->has_buffer = false;
    made->self = made;
    operations.emplace_back(at, made);
    nodes[at]->relay.mailbox()->start(*made, Instant::max(), kNetNow);
    return made;
  }

  base::Rng rng;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::pair<std::uint32_t, std::shared_ptr<Operation>>> operations;  ///< With their ranks.
  std::set<std::uint32_t> dead;
  Links cut_links;
};

/// Which ranks a world on that rank was told of.
class DownWatcher final : public Watcher {
 public:
  explicit DownWatcher(const Relay& relay) : relay_(relay) {}
  void on_close(Instant) override {}
  void on_down(const Peer& peer, const Status& why) override {
    const auto rank = static_cast<std::uint32_t>(core_of(peer)->incarnation.lo);
    (relay_.has_failed(rank) ? failed : lost).insert(rank);
    cause = why;
  }
  void on_failed(const Peer&, std::uint32_t, bool) override {}
  void on_left(const Peer&) override {}
  void on_revoke(const Peer&, const Status&) override {}
  void on_agreement(const Peer&, const wire::RuntimeMessage&) override {}
  bool is_misfit(const wire::MessageEnvelope&) override { return false; }
  void on_misfit(const Peer&, const wire::MessageEnvelope&, Instant) override {}
  void on_decided(Instant) override { ++decided; }

  std::set<std::uint32_t> failed, lost;
  Status cause;
  int decided = 0;

 private:
  const Relay& relay_;
};

std::string numbered(std::uint32_t number, std::size_t size) {
  std::string text = std::to_string(number) + " ";
  text.resize(std::max(size, text.size()), 'x');
  return text;
}

TEST(Relay, MessagesComeByNeighboursAndOnlyThem) {
  Net net(6, Topology::regular(2), 1);
  const std::string small = numbered(1, 10), large = numbered(2, 300'000);
  const auto first = net.send(0, 3, base::as_bytes(small)), second = net.send(0, 3, base::as_bytes(large));
  const auto got = net.receive(3, 0), more = net.receive(3, 0);
  net.settle();
  ASSERT_TRUE(got->final && more->final);
  EXPECT_EQ(base::as_text(got->made_bytes()), small);
  EXPECT_EQ(base::as_text(more->made_bytes()), large);
  EXPECT_TRUE(first->status.ok() && second->status.ok());
  for (std::uint32_t rank = 0; rank < net.size(); ++rank) {
    for (std::uint32_t other = 0; other < net.size(); ++other) {
      EXPECT_EQ(net.nodes[rank]->cores[other]->session() != nullptr, net.nodes[rank]->relay.is_neighbour(other));
    }
  }
}

/// Streams between pairs by chance, while ranks die by chance: each message that its pair survives comes once and in
/// order, all others end with an error, and nothing is dropped as a defect's.
TEST(Relay, StreamsSurviveRelaysThatDie) {
  std::size_t received = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    base::Rng rng(seed);
    const auto size = static_cast<std::uint32_t>(6 + rng.below(8));
    Net net(size, rng.chance(0.5) ? Topology::hypercube() : Topology::regular(4), seed);
    struct Stream {
      std::uint32_t from, to;
      Priority priority;
      std::deque<std::string> texts;  ///< They stay where they are.
      std::vector<std::shared_ptr<Send>> sends;
      std::vector<std::shared_ptr<Receive>> receives;
      bool is_over = false;
    };
    std::vector<Stream> streams(6);
    for (Stream& stream : streams) {
      stream.priority = static_cast<Priority>(rng.below(wire::kClasses));
      stream.from = static_cast<std::uint32_t>(rng.below(size));
      do stream.to = static_cast<std::uint32_t>(rng.below(size));
      while (stream.to == stream.from);
    }
    for (std::uint32_t round = 0; round < 40; ++round) {
      for (Stream& stream : streams) {
        stream.texts.push_back(numbered(round, rng.chance(0.1) ? 100'000 : rng.below(2000)));
      }
      for (int i = 0; i < 40; ++i) net.step();
      if (round % 12 == 11) net.kill(static_cast<std::uint32_t>(rng.below(size)));
      for (Stream& stream : streams) {
        if (!net.lives(stream.from) || !net.lives(stream.to)) continue;
        stream.is_over = stream.is_over || net.is_lost(stream.to, stream.from);  // A world begins no receive then.
        if (stream.is_over) continue;
        stream.sends.push_back(net.send(stream.from, stream.to, base::as_bytes(stream.texts[round]), stream.priority));
        stream.receives.push_back(net.receive(stream.to, stream.from, stream.priority));
      }
    }
    net.settle();
    for (const Stream& stream : streams) {
      if (!net.lives(stream.from) || !net.lives(stream.to)) continue;
      const bool is_whole = !net.is_lost(stream.to, stream.from) && !net.is_lost(stream.from, stream.to);
      for (std::size_t i = 0; i < stream.receives.size(); ++i) {
        const Receive& receive = *stream.receives[i];
        ASSERT_TRUE(receive.final) << stream.from << " to " << stream.to << " number " << i;
        if (is_whole || receive.status.ok()) {
          ASSERT_TRUE(receive.status.ok()) << receive.status.to_string();
          ASSERT_EQ(base::as_text(receive.made_bytes()), stream.texts[i]);
          ++received;
        } else {
          ASSERT_EQ(receive.status.code(), Code::kDisconnected);
        }
      }
    }
    for (const std::uint32_t dead : net.dead) net.nodes[dead]->to.assign(size, {});
    for (const auto& node : net.nodes) EXPECT_EQ(node->relay.dropped(), 0U);
  }
  EXPECT_GT(received, 3000U);
}

/// Links are lost by chance, as many as leave all joined: all messages between ranks that are no neighbours come, once
/// and in order.
TEST(Relay, StreamsGoRoundLinksThatAreLost) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    base::Rng rng(seed);
    const auto size = static_cast<std::uint32_t>(7 + rng.below(6));
    Net net(size, Topology::regular(4), seed);
    struct Stream {
      std::uint32_t from, to;
      std::deque<std::string> texts = {};  ///< They stay where they are.
      std::vector<std::shared_ptr<Send>> sends = {};
      std::vector<std::shared_ptr<Receive>> receives = {};
    };
    std::vector<Stream> streams;
    for (std::uint32_t from = 0; from < size; ++from) streams.push_back({from, (from + 3) % size});
    for (std::uint32_t round = 0; round < 24; ++round) {
      for (int i = 0; i < 40; ++i) net.step();
      const auto one = static_cast<std::uint32_t>(rng.below(size));
      if (round % 8 == 7) net.cut(one, (one + 1 + static_cast<std::uint32_t>(rng.below(2))) % size);
      for (Stream& stream : streams) {
        stream.texts.push_back(numbered(round, rng.chance(0.1) ? 100'000 : rng.below(2000)));
        stream.sends.push_back(net.send(stream.from, stream.to, base::as_bytes(stream.texts.back())));
        stream.receives.push_back(net.receive(stream.to, stream.from));
      }
    }
    net.settle();
    for (const Stream& stream : streams) {
      for (std::size_t i = 0; i < stream.receives.size(); ++i) {
        const Receive& receive = *stream.receives[i];
        ASSERT_TRUE(receive.final && receive.status.ok()) << stream.from << " to " << stream.to << " number " << i;
        ASSERT_EQ(base::as_text(receive.made_bytes()), stream.texts[i]);
      }
    }
    for (const auto& node : net.nodes) EXPECT_EQ(node->relay.dropped(), 0U);
  }
}

TEST(Relay, OfTwoNeighboursThatLostEachOtherTheHigherIsGoneForAllAndNobodyElse) {
  Net net(6, Topology::regular(2), 1);
  std::vector<std::unique_ptr<DownWatcher>> watchers;
  for (const auto& node : net.nodes) {
    watchers.push_back(std::make_unique<DownWatcher>(node->relay));
    node->relay.mailbox()->add_watcher(9, *watchers.back(), node->peers);
  }
  net.cut(2, 3);
  net.settle();
  for (std::uint32_t rank = 0; rank < net.size(); ++rank) {
    EXPECT_TRUE(net.nodes[rank]->relay.is_undecided()) << rank;
    EXPECT_TRUE(watchers[rank]->failed.empty()) << rank;
  }
  EXPECT_EQ(watchers[2]->lost, std::set<std::uint32_t>{3});
  EXPECT_EQ(watchers[3]->lost, std::set<std::uint32_t>{2});
  for (const auto& node : net.nodes) (void)node->relay.expire(kNetNow + std::chrono::milliseconds(500));
  net.settle();
  for (std::uint32_t rank = 0; rank < net.size(); ++rank) {
    EXPECT_FALSE(net.nodes[rank]->relay.is_undecided()) << rank;
    EXPECT_EQ(watchers[rank]->decided, 1) << rank;
    if (rank != 3) {
      EXPECT_EQ(watchers[rank]->failed, std::set<std::uint32_t>{3}) << rank;
    }
  }
  EXPECT_NE(watchers[3]->cause.to_string().find("holds this rank, 3, for failed"), std::string::npos)
      << watchers[3]->cause.to_string();
  EXPECT_TRUE(net.is_lost(3, 0));
  for (std::uint32_t rank = 0; rank < net.size(); ++rank) net.nodes[rank]->relay.mailbox()->remove_watcher(9);
}

TEST(Relay, ARankThatAllNeighboursLostHasFailedAtOnce) {
  Net net(6, Topology::regular(2), 1);
  DownWatcher watcher(net.nodes[0]->relay), neighbour(net.nodes[2]->relay);
  net.nodes[0]->relay.mailbox()->add_watcher(9, watcher, net.nodes[0]->peers);
  net.nodes[2]->relay.mailbox()->add_watcher(9, neighbour, net.nodes[2]->peers);
  net.cut(2, 3);
  net.cut(3, 4);
  net.settle();
  EXPECT_EQ(watcher.failed, std::set<std::uint32_t>{3});
  EXPECT_EQ(neighbour.failed, std::set<std::uint32_t>{3});
  EXPECT_FALSE(net.nodes[2]->relay.is_undecided());
  net.nodes[0]->relay.mailbox()->remove_watcher(9);
  net.nodes[2]->relay.mailbox()->remove_watcher(9);
}

TEST(Relay, CardsCountOnceTheirTellerIsFound) {
  Node node(0, 4, Topology::regular(2));
  node.relay.share_place();
  const auto hear_card = [&](std::uint32_t by, std::uint32_t rank, std::string_view card) {
    const RelayMessage message{.kind = RelayKind::kCard, .rank = rank, .body = base::as_bytes(card)};
    const std::string bytes = wire::encode(message) + std::string(card);
    Status why;
    EXPECT_TRUE(
        node.relay
            .on_message(*node.session_with(node.peers[by], &why), wire::kRelayChannel, base::as_bytes(bytes), kNetNow)
            .ok());
  };
  hear_card(1, 1, "one");
  hear_card(2, 3, "a stranger's");
  EXPECT_EQ(node.relay.cards()[1], "");
  node.relay.meet(1, node.peers[1], kNetNow);
  EXPECT_EQ(node.relay.cards()[1], "one");
  hear_card(1, 2, "two");
  hear_card(3, 3, "three");
  node.relay.tell_card(0, "own", kNetNow);
  EXPECT_FALSE(node.relay.is_formed());
  node.relay.meet(3, node.peers[3], kNetNow);
  EXPECT_TRUE(node.relay.is_formed());
  EXPECT_EQ(node.relay.cards(), (std::vector<std::string>{"own", "one", "two", "three"}));
  EXPECT_TRUE(node.relay.broken().ok());
}

TEST(Relay, AFormationBreaksWithANeighbourThatWasFoundAndNoOther) {
  Node node(0, 4, Topology::regular(2));
  node.relay.share_place();
  Status why;
  node.relay.end(*node.session_with(node.peers[1], &why), Status(Code::kDisconnected, "of a dead run"));
  EXPECT_TRUE(node.relay.broken().ok());
  node.relay.meet(3, node.peers[3], kNetNow);
  node.relay.end(*node.session_with(node.peers[3], &why), Status(Code::kDisconnected, "it died"));
  EXPECT_EQ(node.relay.broken().code(), Code::kDisconnected);
  EXPECT_TRUE(node.relay.is_formed());
}

class RelayRules : public testing::Test {
 protected:
  Status hear(std::uint32_t by, const RelayMessage& message, std::uint32_t channel = wire::kRelayChannel) {
    Status why;
    Node& node = *net_.nodes[0];
    const std::string bytes = wire::encode(message) + std::string(base::as_text(message.body));
    return node.relay.on_message(*node.session_with(node.peers[by], &why), channel, base::as_bytes(bytes), kNetNow);
  }
  Relay& relay() { return net_.nodes[0]->relay; }
  /// What rank 0 says to that neighbour next on this channel.
  RelayMessage said(std::uint32_t to, std::uint32_t channel = wire::kRelayChannel) {
    net_.pump(0);
    auto& queue = net_.nodes[0]->to[to];
    const auto next = std::ranges::find(queue, channel, &Node::Message::channel);
    if (next == queue.end()) return {};
    last_ = next->bytes;
    queue.erase(next);
    return wire::decode_relay(base::as_bytes(last_)).value();
  }
  static RelayMessage frame(std::uint32_t source, std::uint32_t target, std::uint64_t sequence) {
    return {.source = source, .target = target, .sequence = sequence, .body = base::as_bytes("piece")};
  }

  Net net_{6, Topology::regular(2), 1};
  std::string last_;
};

TEST_F(RelayRules, AFrameIsPassedOnWithOneHopMore) {
  ASSERT_TRUE(hear(5, frame(5, 2, 9)).ok());
  const RelayMessage passed = said(1);
  EXPECT_EQ(passed.kind, RelayKind::kFrame);
  EXPECT_EQ(passed.hops, 1U);
  EXPECT_EQ(passed.sequence, 9U);
  EXPECT_EQ(base::as_text(passed.body), "piece");
}

TEST_F(RelayRules, AFrameThatGoesInCirclesIsDropped) {
  RelayMessage looping = frame(5, 2, 9);
  looping.hops = 6;
  ASSERT_TRUE(hear(5, looping).ok());
  EXPECT_EQ(relay().dropped(), 1U);
  EXPECT_EQ(said(1).sequence, 0U) << "nothing";
}

TEST_F(RelayRules, ARankThatSendsMoreThanItsWindowIsStopped) {
  net_.nodes[0]->to[1].resize(kCredit);  // The next neighbour takes nothing.
  for (std::uint64_t i = 1; i <= 2 * kWindowPieces + 5; ++i) ASSERT_TRUE(hear(5, frame(5, 2, i)).ok());
  EXPECT_EQ(relay().dropped(), 5U);
}

TEST_F(RelayRules, WhatNoRankSaysIsCorrupt) {
  EXPECT_EQ(hear(5, frame(9, 2, 1)).code(), Code::kCorrupt) << "there is no rank 9";
  EXPECT_EQ(hear(5, frame(1, 0, 1)).code(), Code::kCorrupt) << "a neighbour needs no frames";
  EXPECT_EQ(hear(5, {.kind = RelayKind::kGraph, .generation = 1, .body = base::as_bytes("toolong")}).code(),
            Code::kCorrupt);
}

TEST_F(RelayRules, ARankThatAcknowledgesWhatItWasNotSentHasFailed) {
  RelayMessage lie = frame(3, 0, 1);
  lie.acknowledged = 1;
  ASSERT_TRUE(hear(5, lie).ok()) << "the neighbour is not to blame";
  EXPECT_EQ(said(1).kind, RelayKind::kGone);
  Status why;
  EXPECT_EQ(relay().session_with(net_.nodes[0]->peers[3], &why), nullptr);
  EXPECT_EQ(why.code(), Code::kCorrupt);
}

TEST_F(RelayRules, NewsGoToAllNeighboursBeforeFrames) {
  ASSERT_TRUE(hear(5, frame(5, 2, 9)).ok());
  ASSERT_TRUE(hear(5, {.kind = RelayKind::kGone, .rank = 4}).ok());
  const RelayMessage first = said(1);
  EXPECT_EQ(first.kind, RelayKind::kGone);
  EXPECT_EQ(first.rank, 4U);
  EXPECT_EQ(said(1).kind, RelayKind::kFrame);
  ASSERT_TRUE(hear(1, {.kind = RelayKind::kGone, .rank = 4}).ok());
  EXPECT_EQ(said(1).sequence, 0U) << "it was known";
}

TEST_F(RelayRules, AFrameKeepsItsClassAndTheNewsGoBeforeTheFramesOfEach) {
  constexpr std::array kChannels = {wire::kRelayCriticalChannel, wire::kRelayChannel, wire::kRelayBulkChannel};
  for (const std::uint32_t channel : kChannels) ASSERT_TRUE(hear(5, frame(5, 2, 9), channel).ok());
  ASSERT_TRUE(hear(5, {.kind = RelayKind::kGone, .rank = 4}).ok());
  for (const std::uint32_t channel : kChannels) {
    EXPECT_EQ(said(1, channel).kind, RelayKind::kGone) << channel;
    EXPECT_EQ(said(1, channel).sequence, 9U) << channel;
    EXPECT_EQ(said(1, channel).sequence, 0U) << channel << ": one frame of each class";
  }
}

TEST_F(RelayRules, ALostLinkIsToldOnceAndFramesGoRoundIt) {
  ASSERT_TRUE(hear(5, frame(5, 2, 9)).ok());
  ASSERT_TRUE(hear(5, {.kind = RelayKind::kLost, .rank = 2, .other = 1}).ok());
  const RelayMessage first = said(1);
  EXPECT_EQ(first.kind, RelayKind::kLost);
  EXPECT_EQ(first.rank, 2U);
  EXPECT_EQ(first.other, 1U);
  EXPECT_EQ(said(1).sequence, 9U) << "what waited goes where it was to go";
  ASSERT_TRUE(hear(1, {.kind = RelayKind::kLost, .rank = 2, .other = 1}).ok());
  EXPECT_EQ(said(1).kind, RelayKind::kFrame) << "it was known";
  ASSERT_TRUE(hear(1, {.kind = RelayKind::kLost, .rank = 1, .other = 2}).ok());
  EXPECT_EQ(said(1).rank, 1U) << "that it lives is news";
  ASSERT_TRUE(hear(1, frame(1, 2, 7)).ok());
  EXPECT_EQ(said(5).kind, RelayKind::kLost);
  EXPECT_EQ(said(5).kind, RelayKind::kLost);
  EXPECT_EQ(said(5).sequence, 7U) << "by the other way";
}

TEST_F(RelayRules, WhatWaitsForALinkThatIsLostIsDropped) {
  net_.nodes[0]->to[1].resize(kCredit);  // The neighbour takes nothing.
  ASSERT_TRUE(hear(5, frame(5, 2, 9)).ok());
  EXPECT_FALSE(relay().is_idle());
  ASSERT_TRUE(hear(5, {.kind = RelayKind::kLost, .rank = 1, .other = 0}).ok()) << "the other end found it first";
  EXPECT_EQ(said(5).rank, 1U);
  EXPECT_EQ(said(5).rank, 0U) << "so the others know that it lives";
  EXPECT_TRUE(relay().is_idle());
  EXPECT_TRUE(relay().is_undecided());
  EXPECT_EQ(relay().lost(), std::vector<std::uint32_t>{1});
}

TEST_F(RelayRules, OnlyFramesAndNewsOfTheWaysHaveAClass) {
  for (const std::uint32_t channel : {wire::kRelayCriticalChannel, wire::kRelayBulkChannel}) {
    EXPECT_EQ(hear(5, {.kind = RelayKind::kLeaving, .rank = 4}, channel).code(), Code::kCorrupt);
    EXPECT_EQ(hear(5, {.kind = RelayKind::kCard, .rank = 4, .body = base::as_bytes("card")}, channel).code(),
              Code::kCorrupt);
    EXPECT_TRUE(hear(5, {.kind = RelayKind::kGone, .rank = 4}, channel).ok());
  }
}

TEST(Relay, AFullClassHoldsBackNoOther) {
  Net net(4, Topology::regular(2), 1);
  const std::string large = numbered(1, 60'000), small = numbered(2, 8);
  std::vector<std::shared_ptr<Send>> bulk;
  for (int i = 0; i < 10; ++i) bulk.push_back(net.send(0, 2, base::as_bytes(large)));
  net.pump(0);
  EXPECT_FALSE(bulk.back()->final) << "more than a window";
  const auto urgent = net.send(0, 2, base::as_bytes(small), Priority::kCritical);
  net.pump(0);
  EXPECT_TRUE(urgent->final);
  const auto got = net.receive(2, 0);
  net.settle();
  ASSERT_TRUE(got->final);
  for (const auto& each : bulk) EXPECT_TRUE(each->final);
}

TEST_F(RelayRules, ARankHearsThatItIsHeldForGone) {
  ASSERT_TRUE(hear(5, {.kind = RelayKind::kGone, .rank = 0}).ok());
  Status why;
  EXPECT_EQ(relay().session_with(net_.nodes[0]->peers[3], &why), nullptr);
  EXPECT_NE(why.to_string().find("holds this rank, 0, for failed"), std::string::npos) << why.to_string();
  for (const std::uint32_t neighbour : {1U, 5U}) {
    const RelayMessage told = said(neighbour);
    EXPECT_EQ(told.kind, RelayKind::kGone) << "the teller may die before it has told all";
    EXPECT_EQ(told.rank, 0U);
  }
}

TEST_F(RelayRules, ASmallerWorldHasAGraphOfItsOwn) {
  const std::string members = bitmap_of({true, false, true, true, false, true});
  ASSERT_TRUE(hear(5, {.kind = RelayKind::kGraph, .generation = 1, .body = base::as_bytes(members)}).ok());
  EXPECT_TRUE(relay().is_neighbour(2));
  const RelayMessage told = said(2);
  EXPECT_EQ(told.kind, RelayKind::kGraph) << "the new neighbour, too";
  EXPECT_EQ(told.generation, 1U);
  Status why;
  EXPECT_EQ(relay().session_with(net_.nodes[0]->peers[4], &why), nullptr);
  EXPECT_NE(why.to_string().find("left out"), std::string::npos) << why.to_string();
}

/// What a rank asked for an acknowledgement of may be lost with a relay, and the question with it.
TEST(Relay, ARankThatLeavesAsksAgainWhenTheWaysChange) {
  Net net(4, Topology::regular(2), 1);
  const std::string text = numbered(1, 10);
  const auto sent = net.send(1, 3, base::as_bytes(text));
  const auto got = net.receive(3, 1);
  Relay& relay = net.nodes[1]->relay;
  net.pump(1);
  EXPECT_FALSE(relay.drain(kNetNow));
  net.pump(1);
  net.kill(0);  // By which all of that goes.
  net.settle();
  ASSERT_TRUE(got->final && sent->final);
  EXPECT_TRUE(got->status.ok() && sent->status.ok());
  EXPECT_FALSE(relay.drain(kNetNow));  // Asks again.
  net.settle();
  EXPECT_TRUE(relay.drain(kNetNow));
}

TEST_F(RelayRules, LeavingIsKnownOnceAllSaidIt) {
  relay().say_leaving(kNetNow);
  EXPECT_EQ(said(1).kind, RelayKind::kLeaving);
  for (const std::uint32_t rank : {1U, 2U, 3U, 4U}) {
    ASSERT_TRUE(hear(1, {.kind = RelayKind::kLeaving, .rank = rank}).ok());
    EXPECT_FALSE(relay().all_leave());
  }
  ASSERT_TRUE(hear(1, {.kind = RelayKind::kGone, .rank = 5}).ok());
  EXPECT_TRUE(relay().all_leave()) << "the last one is gone";
}

}  // namespace
}  // namespace hawser::runtime
