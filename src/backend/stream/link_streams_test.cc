// Streams of links, where streams are apart: when they open, what waits for what, and what does not.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "backend/stream/machine.h"
#include "backend/stream/machine_driver.h"
#include "backend/stream/test_pair.h"
#include "base/bytes.h"

namespace hawser::backend::stream {
namespace {

using Words = std::vector<std::string>;

constexpr wire::Link kOne{Priority::kRealtime, 16}, kOther{Priority::kRealtime, 17}, kBulkOne{Priority::kBulk, 17};

struct ApartPair : Pair {
  explicit ApartPair(unsigned connections = 2, std::uint64_t seed = 1) : Pair(connections, seed) {
    network.are_apart = true;
    connect();
  }
  void say(wire::Link link, std::string_view text) { say(to_b, link, text); }
  void say(Path* from, wire::Link link, std::string_view text) {
    while (!from->send(link, base::as_bytes(text), {})) step();
  }
  /// Has the streams of these links opened, in this order.
  void open_streams(const std::vector<wire::Link>& links) {
    some_steps();
    for (const wire::Link link : links) {
      const std::size_t before = network.joined.size();
      say(link, "opens");
      ASSERT_TRUE(run([&] { return b->messages.size() == 1; }));
      some_steps();
      EXPECT_EQ(network.joined.size(), before + 1);
      b->messages.clear();
    }
  }
  void some_steps() {
    for (int i = 0; i < 200; ++i) step();
  }
  std::size_t streams() const { return network.joined.size(); }
};

TEST(LinkStreams, EachOpensAfterTheFirstMessageOfItsLink) {
  ApartPair pair;
  pair.some_steps();
  ASSERT_EQ(pair.streams(), 2U);
  pair.open_streams({kOne});
  pair.say(kOne, "again");
  pair.say(Priority::kRealtime, "the library's own");
  pair.say(Priority::kBulk, "the library's own");
  pair.some_steps();
  EXPECT_EQ(pair.streams(), 3U);
  EXPECT_EQ(pair.b->messages.size(), 3U);
  EXPECT_NE(pair.to_b->describe().find("1 streams of messages"), std::string::npos) << pair.to_b->describe();
}

TEST(LinkStreams, TheOpenerOpensThoseOfTheAcceptorsMessagesToo) {
  ApartPair pair;
  pair.say(pair.b->up, kOther, "from b");
  ASSERT_TRUE(pair.run([&] { return pair.streams() == 3; }));
  pair.some_steps();
  EXPECT_NE(pair.b->up->queue_of(kOther), pair.b->up->queue_of(kOne));
  pair.say(pair.b->up, kOther, "on its own");
  ASSERT_TRUE(pair.run([&] { return pair.a->messages.size() == 2; }));
  EXPECT_EQ(pair.streams(), 3U);
}

TEST(LinkStreams, ThereAreNoneWhereStreamsWaitOrThePathHasOneStream) {
  Pair waiting;
  waiting.connect();
  ApartPair narrow(1);
  for (Pair* pair : {&waiting, static_cast<Pair*>(&narrow)}) {
    const std::size_t before = pair->network.joined.size();
    for (std::size_t i = 0; i < wire::kLinks; ++i) {
      ASSERT_TRUE(pair->to_b->send(wire::Link::at(i), base::as_bytes(std::string_view("text")), {}));
    }
    ASSERT_TRUE(pair->run([&] { return pair->b->messages.size() == wire::kLinks; }));
    EXPECT_EQ(pair->network.joined.size(), before);
  }
}

// Through the change of stream, in both directions, in pieces of any size.
TEST(LinkStreams, MessagesOfALinkKeepTheirOrder) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ApartPair pair(2 + seed % 2, seed);
    pair.network.step_max = seed % 4 == 0 ? 0 : 1 + seed * 7;
    base::Rng rng(seed);
    std::map<std::string, int> said;  // By speaker and link.
    constexpr int kCount = 600;
    for (int i = 0; i < kCount; ++i) {
      Side& side = rng.chance(0.5) ? *pair.a : *pair.b;
      Path* const path = &side == pair.a.get() ? pair.to_b : pair.b->up;
      const std::size_t link = rng.below(wire::kLinks);
      const std::string name = side.identity.name + std::to_string(link);
      pair.say(path, wire::Link::at(link),
               name + " " + std::to_string(said[name]++) + std::string(rng.below(300), ' '));
      if (rng.chance(0.3)) pair.step();
    }
    ASSERT_TRUE(pair.run([&] { return pair.a->messages.size() + pair.b->messages.size() == kCount; })) << seed;
    std::map<std::string, int> came;
    for (const Side* side : {pair.a.get(), pair.b.get()}) {
      for (const std::string& message : side->messages) {
        EXPECT_EQ(std::stoi(message.substr(message.find(' '))), came[message.substr(0, message.find(' '))]++) << seed;
      }
    }
    EXPECT_EQ(came, said);
    EXPECT_TRUE(pair.a->down.empty() && pair.b->down.empty());
  }
}

TEST(LinkStreams, ALinkOfWhichNothingComesHoldsNoOtherUp) {
  ApartPair pair;
  pair.open_streams({kOne, kOther, Priority::kCritical});
  pair.network.held = {2};  // That of kOne.
  pair.say(kOne, "one");
  pair.say(kOther, "other");
  pair.say(Priority::kCritical, "critical");
  pair.say(Priority::kRealtime, "own");
  ASSERT_TRUE(pair.run([&] { return pair.b->messages.size() == 3; }));
  pair.some_steps();
  EXPECT_EQ(pair.b->messages.size(), 3U);
  pair.network.held = {0};  // Small operations, and the library's own messages.
  pair.say(Priority::kRealtime, "own");
  pair.say(kOther, "other");
  ASSERT_TRUE(pair.run([&] { return pair.b->messages.size() == 5; }));
  EXPECT_EQ(std::ranges::count(pair.b->messages, "other"), 2);
  EXPECT_EQ(std::ranges::count(pair.b->messages, "one"), 1);
  pair.network.held = {};
  ASSERT_TRUE(pair.run([&] { return pair.b->messages.size() == 6; }));
}

TEST(LinkStreams, AFullLinkLeavesRoomForOthers) {
  ApartPair pair;
  pair.open_streams({kOne, kOther});
  pair.network.held = {2};
  const std::string large(60'000, 'x');
  int taken = 0;
  for (; taken < 1000 && pair.to_b->send(kOne, base::as_bytes(large), {}); ++taken) pair.step();
  EXPECT_LT(taken, 1000);
  EXPECT_TRUE(pair.to_b->send(kOther, base::as_bytes(std::string_view("other")), {}));
  ASSERT_TRUE(pair.run([&] { return pair.b->messages.size() == 1; }));
}

TEST(LinkStreams, AGreetingComesBeforeWhatIsSentAfterIt) {
  ApartPair pair;
  pair.open_streams({kOne, kBulkOne});
  pair.network.held = {0};
  pair.say(kOne, "before");
  ASSERT_TRUE(pair.to_b->send_first(base::as_bytes(std::string_view("greeting")), {}));
  pair.say(kOne, "after");
  pair.say(kBulkOne, "after");
  pair.say(Priority::kBulk, "after");
  pair.some_steps();
  EXPECT_EQ(pair.b->messages, Words{"before"});
  pair.network.held = {};
  ASSERT_TRUE(pair.run([&] { return pair.b->messages.size() == 5; }));
  EXPECT_EQ(pair.b->messages, (Words{"before", "greeting", "after", "after", "after"}));
}

TEST(LinkStreams, TheLastMessageComesAfterAllOthers) {
  // One after another each stream is the one that is late: 0, that of bulk, those of links.
  for (const std::size_t late : {0U, 1U, 2U, 3U}) {
    ApartPair pair;
    pair.open_streams({kOne, kBulkOne});
    pair.network.held = {late};
    for (const wire::Link link : {kOne, kBulkOne, wire::Link(Priority::kRealtime), wire::Link(Priority::kBulk)}) {
      pair.say(link, "before");
    }
    ASSERT_TRUE(pair.to_b->send_last(base::as_bytes(std::string_view("goodbye")), {}));
    EXPECT_FALSE(pair.to_b->send(kOne, base::as_bytes(std::string_view("after")), {}));
    pair.some_steps();
    EXPECT_EQ(pair.b->messages, (Words{"before", "before", "before"})) << late;
    pair.network.held = {};
    ASSERT_TRUE(pair.run([&] { return pair.b->messages.size() == 5; })) << late;
    EXPECT_EQ(pair.b->messages.back(), "goodbye") << late;
  }
}

TEST(LinkStreams, AllMessagesAreHeardBeforeAGoodbye) {
  for (const bool closes : {true, false}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      ApartPair pair(3, seed);
      pair.open_streams({kOne, kOther, kBulkOne});
      for (int i = 0; i < 40; ++i) {
        for (const wire::Link link : {kOne, kOther, kBulkOne}) pair.say(link, "words");
      }
      pair.network.step_max = closes ? 7 : 0;
      if (closes) pair.a->port->begin_close(pair.now);
      if (!closes) pair.a->port->release_path(pair.to_b);
      ASSERT_TRUE(pair.run([&] { return !pair.b->down.empty(); }));
      EXPECT_EQ(pair.b->messages.size(), 120U) << "seed " << seed << (closes ? ", closed" : ", released");
      EXPECT_NE(pair.b->down[0].message().find("goodbye"), std::string_view::npos) << pair.b->down[0].to_string();
    }
  }
}

TEST(LinkStreams, ALostOneEndsThePath) {
  ApartPair pair;
  pair.open_streams({kOne});
  pair.network.cut(2);
  ASSERT_TRUE(pair.run([&] { return !pair.a->down.empty() && !pair.b->down.empty(); }));
  EXPECT_EQ(pair.a->down[0].code(), Code::kDisconnected);
}

/// What a peer puts on one stream, for a machine that reads it.
struct Reader {
  Reader() : machine(regions, events, nullptr, {.peer = "peer", .streams = 2, .is_apart = true}) {
    machine.open_stream(1);
    machine.open_stream(stream_of(kOne));
  }
  Status read(unsigned stream, const wire::FrameHead& head, std::span<const std::uint64_t> meta) {
    std::string bytes;
    base::ByteWriter out(&bytes);
    wire::FrameHead whole = head;
    whole.meta_size = static_cast<std::uint16_t>(meta.size_bytes());
    wire::encode_head(out, whole);
    for (const std::uint64_t number : meta) out.u64(number);
    bytes.resize(wire::lead_size(whole.meta_size));
    return deliver(machine, stream, base::as_bytes(bytes));
  }
  RegionTable regions{1};
  EventQueue events;
  Machine machine;
};

TEST(LinkStreams, CarryMessagesOfTheirLinkAlone) {
  const auto flags = [](wire::Link link) { return static_cast<std::uint8_t>(link.index()); };
  const std::uint64_t none[] = {0};
  EXPECT_TRUE(Reader().read(stream_of(kOne), {.type = wire::FrameType::kMessage, .flags = flags(kOne)}, none).ok());
  for (const std::uint8_t other : {flags(kOther), static_cast<std::uint8_t>(flags(kOne) | 2 * wire::kFlagAside)}) {
    EXPECT_EQ(Reader().read(stream_of(kOne), {.type = wire::FrameType::kMessage, .flags = other}, none).code(),
              Code::kCorrupt);
  }
  EXPECT_EQ(Reader().read(stream_of(kOne), {.type = wire::FrameType::kMessage, .flags = flags(kOne)}, {}).code(),
            Code::kCorrupt)
      << "without its place";
  EXPECT_EQ(Reader().read(stream_of(kOne), {.type = wire::FrameType::kPing}, none).code(), Code::kCorrupt);
}

}  // namespace
}  // namespace hawser::backend::stream
