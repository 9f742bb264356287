#include "backend/sim/net.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "backend/sim/connection.h"

namespace hawser::sim {
namespace {

using backend::stream::Moved;
using backend::stream::Network;
using backend::stream::Readiness;
using backend::stream::Stream;
using backend::stream::StreamState;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<iovec> parts_of(std::string& text) { return {{text.data(), text.size()}}; }

/// Two hosts, one connection from the first to the second.
struct Pair {
  explicit Pair(NetOptions options = {}, std::uint64_t seed = 1) : world({.seed = seed}), net(world) {
    net.options() = options;
    for (std::uint32_t i = 0; i < 2; ++i) {
      hosts[i] = Host::create(world, i == 0 ? "a" : "b", i);
      networks[i] = std::move(*net.open(hosts[i], i == 0 ? "sim:a" : "sim:b"));
    }
  }
  void connect() {
    streams[0] = std::move(*networks[0]->connect("sim:b", {}));
    world.run_for(milliseconds(1));
    streams[1] = networks[1]->accept();
    ASSERT_NE(streams[1], nullptr);
    ASSERT_EQ(streams[0]->state(), StreamState::kOpen);
  }
  /// Sends all of `text` from `end`, as room comes.
  std::size_t send(int end, std::string& text) {
    std::size_t sent = 0;
    for (int i = 0; i < 10'000 && sent < text.size(); ++i) {
      const iovec part{text.data() + sent, text.size() - sent};
      const Moved moved = streams[end]->send({&part, 1});
      if (moved.closed || moved.bytes == 0) break;
      sent += moved.bytes;
    }
    return sent;
  }
  std::string receive(int end, Moved* last = nullptr) {
    std::string all;
    for (;;) {
      std::array<char, 1000> bytes;
      const iovec part{bytes.data(), bytes.size()};
      const Moved moved = streams[end]->receive({&part, 1});
      if (last != nullptr) *last = moved;
      if (moved.bytes == 0) return all;
      all.append(bytes.data(), moved.bytes);
    }
  }
  World world;
  Net net;
  std::shared_ptr<Host> hosts[2];
  std::unique_ptr<Network> networks[2];
  std::unique_ptr<Stream> streams[2];
};

TEST(Net, ConnectsAndCarriesBytesInOrder) {
  Pair pair;
  pair.connect();
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += static_cast<char>('a' + i % 26);
  EXPECT_EQ(pair.send(0, text), text.size());
  EXPECT_EQ(pair.receive(1), "");  // It takes time.
  pair.world.run_for(milliseconds(1));
  EXPECT_EQ(pair.receive(1), text);
  pair.world.run_for(milliseconds(1));
  EXPECT_EQ(pair.streams[0]->released(), text.size());
}

TEST(Net, BytesAreTheCallersUntilReleased) {
  Pair pair;
  pair.connect();
  std::string text = "before";
  ASSERT_EQ(pair.send(0, text), 6U);
  EXPECT_EQ(pair.streams[0]->released(), 0U);
  text = "after!";  // Too early, and it shows.
  pair.world.run_for(milliseconds(1));
  EXPECT_EQ(pair.receive(1), "after!");
  EXPECT_EQ(pair.streams[0]->released(), 6U);
}

TEST(Net, ACloseKeepsNoHoldOnTheCallersBytes) {
  Pair pair;
  pair.connect();
  std::string text = "before";
  ASSERT_EQ(pair.send(0, text), 6U);
  pair.streams[0]->close(false);
  text = "after!";
  pair.world.run_for(milliseconds(1));
  Moved last;
  EXPECT_EQ(pair.receive(1, &last), "before");
  EXPECT_TRUE(last.closed);
  EXPECT_TRUE(last.status.ok());
}

TEST(Net, AFullWindowHoldsTheSenderBack) {
  std::string text(1000, 'x');  // Outlives the pair, whose streams hold on to it.
  Pair pair({.pipe = {.capacity_bytes = 100, .short_chance = 0}});
  pair.connect();
  EXPECT_EQ(pair.send(0, text), 100U);
  pair.world.run_for(milliseconds(1));
  EXPECT_EQ(pair.send(0, text), 0U);  // It arrived, but nobody read it.
  EXPECT_EQ(pair.receive(1).size(), 100U);
  pair.world.run_for(milliseconds(1));
  std::array<Readiness, 4> ready;
  bool acceptable = false;
  ASSERT_EQ(pair.networks[0]->ready(ready, &acceptable), 1U);
  EXPECT_TRUE(ready[0].writable);
  EXPECT_EQ(pair.send(0, text), 100U);
}

TEST(Net, OneThatWaitsToBeAcceptedIsNotForgotten) {
  Pair pair;
  auto opened = std::move(*pair.networks[0]->connect("sim:b", {}));
  pair.world.run_for(milliseconds(1));
  std::array<Readiness, 4> ready;
  bool acceptable = false;
  pair.networks[1]->ready(ready, &acceptable);
  EXPECT_TRUE(acceptable);
  pair.networks[1]->ready(ready, &acceptable);
  EXPECT_TRUE(acceptable) << "nobody accepted it, and nothing tells of it again";
  EXPECT_NE(pair.networks[1]->accept(), nullptr);
}

TEST(Net, RefusedAndUnanswered) {
  Pair pair;
  pair.networks[1]->stop_listening();
  auto refused = std::move(*pair.networks[0]->connect("sim:b", {}));
  pair.world.run_for(milliseconds(1));
  EXPECT_EQ(refused->state(), StreamState::kClosed);
  EXPECT_EQ(refused->status().code(), Code::kDisconnected);
  pair.net.fabric().cut(0, 1);
  auto silent = std::move(*pair.networks[0]->connect("sim:b", {}));
  pair.world.run_for(milliseconds(999));
  EXPECT_EQ(silent->state(), StreamState::kConnecting);
  pair.world.run_for(milliseconds(2));
  EXPECT_EQ(silent->status().code(), Code::kTimedOut);
  EXPECT_FALSE(pair.networks[0]->connect("sim:nowhere", {}).has_value());
}

TEST(Net, APartitionDelaysBothWaysOrOne) {
  Pair pair;
  pair.connect();
  std::string there = "there", back = "back";
  pair.net.fabric().cut(0, 1);
  pair.send(0, there);
  pair.send(1, back);
  pair.world.run_for(seconds(3));
  EXPECT_EQ(pair.receive(1), "");
  EXPECT_EQ(pair.receive(0), "back");
  EXPECT_EQ(pair.streams[1]->released(), 0U);  // The acknowledgement is cut off.
  pair.net.fabric().heal(0, 1);
  pair.world.run_for(milliseconds(1));
  EXPECT_EQ(pair.receive(1), "there");
  EXPECT_EQ(pair.streams[1]->released(), 4U);
}

TEST(Net, AResetLosesWhatIsOnItsWay) {
  Pair pair;
  pair.connect();
  std::string first = "first", second = "second";
  pair.send(0, first);
  pair.world.run_for(milliseconds(1));
  pair.net.fabric().set_default({});
  pair.net.reset(pair.net.between(0, 1).at(0));
  pair.world.run_for(microseconds(9));
  pair.send(0, second);
  pair.world.run_for(milliseconds(1));
  Moved last;
  EXPECT_EQ(pair.receive(1, &last), "first");
  EXPECT_TRUE(last.closed);
  EXPECT_EQ(last.status.code(), Code::kDisconnected);
  EXPECT_EQ(pair.send(0, first), 0U);
}

TEST(Net, AfterAResetNothingComesFromOneThatDoesNotKnowOfIt) {
  Pair pair;
  pair.connect();
  pair.net.fabric().set_link(1, 0, {.latency = milliseconds(5)});  // The sender hears of the reset late.
  std::string lost = "lost", late = "late";
  pair.send(0, lost);
  pair.net.reset(pair.net.between(0, 1).at(0));
  pair.world.run_for(milliseconds(1));
  EXPECT_EQ(pair.send(0, late), late.size());
  pair.world.run_for(milliseconds(1));
  Moved last;
  const std::string got = pair.receive(1, &last);
  EXPECT_EQ(got.find("late"), std::string::npos) << "nothing comes behind what was lost";
  EXPECT_TRUE(last.closed);
}

TEST(Net, AHalfCloseLeavesTheOtherWay) {
  Pair pair;
  pair.connect();
  pair.net.half_close(pair.net.between(0, 1).at(0), 0);
  pair.world.run_for(milliseconds(1));
  Moved last;
  pair.receive(1, &last);
  EXPECT_TRUE(last.closed);
  std::string text = "still";
  EXPECT_EQ(pair.send(0, text), 0U);
  EXPECT_EQ(pair.send(1, text), 5U);
  pair.world.run_for(milliseconds(1));
  EXPECT_EQ(pair.receive(0), "still");
}

TEST(Net, ClosingWithUnreadBytesIsAReset) {
  Pair pair;
  pair.connect();
  std::string text = "unread";
  pair.send(0, text);
  pair.world.run_for(milliseconds(1));
  pair.streams[1]->close(false);
  pair.world.run_for(milliseconds(1));
  Moved last;
  pair.receive(0, &last);
  EXPECT_TRUE(last.closed);
  EXPECT_FALSE(last.status.ok());
}

TEST(Net, ACrashResetsWhileALossOfPowerIsSilent) {
  for (const bool crash : {true, false}) {
    Pair pair;
    pair.connect();
    pair.hosts[1]->die();
    crash ? pair.net.crash(1) : pair.net.lose_power(1);
    pair.world.run_for(seconds(1));
    Moved last;
    pair.receive(0, &last);
    EXPECT_EQ(last.closed, crash);
    std::string text = "x";
    EXPECT_EQ(pair.send(0, text), crash ? 0U : 1U);
    pair.world.run_for(seconds(1));
    EXPECT_EQ(pair.net.between(0, 1).empty(), false);
    if (crash) continue;
    pair.receive(0, &last);
    EXPECT_FALSE(last.closed);
    pair.net.power_on(1);  // It knows nothing of the connection, and says so to what is sent again.
    pair.world.run_for(seconds(1));
    pair.receive(0, &last);
    EXPECT_TRUE(last.closed);
  }
}

TEST(Net, AStoppedProcessIsStillConnectedTo) {
  Pair pair;
  pair.hosts[1]->stop();
  auto stream = std::move(*pair.networks[0]->connect("sim:b", {}));
  pair.world.run_for(milliseconds(1));
  EXPECT_EQ(stream->state(), StreamState::kOpen);
}

TEST(Net, ARestartListensAgain) {
  Pair pair;
  pair.hosts[1]->die();
  pair.net.crash(1);
  pair.networks[1] = std::move(*pair.net.open(Host::create(pair.world, "b", 1), "sim:b"));
  pair.connect();
  EXPECT_FALSE(pair.net.open(pair.hosts[0], "sim:b").has_value());
}

TEST(Net, StreamsOvertakeEachOtherButNeverThemselves) {
  Pair pair;
  pair.net.fabric().set_link(0, 1, {.jitter_max = milliseconds(1), .loss = 0.2});
  pair.connect();
  auto other = std::move(*pair.networks[0]->connect("sim:b", {}));
  pair.world.run_for(milliseconds(20));
  auto accepted = pair.networks[1]->accept();
  ASSERT_NE(accepted, nullptr);
  std::string text;
  for (int i = 0; i < 3000; ++i) text += static_cast<char>('a' + i % 26);
  int overtaken = 0;
  for (int round = 0; round < 50; ++round) {
    std::string late = "x";
    ASSERT_EQ(pair.send(0, text), text.size());
    other->send(parts_of(late));
    std::string got;
    bool early = false;
    for (int i = 0; i < 1000 && got.size() < text.size(); ++i) {
      pair.world.run_for(microseconds(20));
      char byte = 0;
      const iovec part{&byte, 1};
      early = early || (accepted->receive({&part, 1}).bytes == 1 && got.size() < text.size());
      got += pair.receive(1);
    }
    EXPECT_EQ(got, text);
    overtaken += early ? 1 : 0;
    pair.world.run_for(milliseconds(50));
  }
  EXPECT_GT(overtaken, 0);
}

}  // namespace
}  // namespace hawser::sim
