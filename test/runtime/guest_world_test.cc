// Worlds on agents of the program's: several on one agent, beside all else that the agent does.

#include <gtest/gtest.h>

#include <hawser/agent.h>
#include <hawser/driver.h>
#include <hawser/world.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hawser {
namespace {

using namespace std::chrono_literals;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// Keys and values of this process.
class MemoryStore {
 public:
  WorldStore store() {
    return {.set =
                [this](const std::string& key, const std::string& value) {
                  const std::lock_guard lock(mutex_);
                  values_[key] = value;
                  news_.notify_all();
                  return Status();
                },
            .get = [this](const std::string& key, Duration timeout) -> Result<std::string> {
              std::unique_lock lock(mutex_);
              if (!news_.wait_for(lock, timeout, [&] { return values_.contains(key); })) {
                return Status(Code::kTimedOut, "nobody set " + key);
              }
              return values_[key];
            }};
  }

 private:
  std::mutex mutex_;
  std::condition_variable news_;
  std::map<std::string, std::string> values_;
};

class GuestWorld : public testing::TestWithParam<std::string> {
 protected:
  static Agent make_agent(const std::string& name, std::shared_ptr<Directory> directory = {}) {
    AgentOptions options{.name = name, .backends = {{.name = GetParam()}}};
    options.status_page = "off";
    options.directory = std::move(directory);
    Result<Agent> agent = Agent::open(std::move(options));
    EXPECT_TRUE(agent.has_value()) << agent.error().to_string();
    return std::move(*agent);
  }
  void open_agents(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) agents_.push_back(make_agent("node" + std::to_string(i)));
    for (std::uint32_t i = 0; i < count; ++i) {
      std::vector<Peer> its;
      for (std::uint32_t other = 0; other < count; ++other) {
        its.push_back(other == i ? agents_[i].self() : agents_[i].add_peer(agents_[other].card().value()).value());
      }
      peers_.push_back(std::move(its));
    }
  }
  static WorldOptions options(const std::string& name, std::uint32_t rank) {
    WorldOptions made;
    made.name = name;
    made.rank = rank;
    made.timeout = 60s;
    return made;
  }
  /// A world of all agents, or of those.
  std::vector<World> open(const std::string& name, std::vector<std::uint32_t> of = {}) {
    if (of.empty()) {
      for (std::uint32_t i = 0; i < agents_.size(); ++i) of.push_back(i);
    }
    std::vector<World> worlds(of.size());
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < of.size(); ++rank) {
      threads.emplace_back([&, rank] {
        std::vector<Peer> ranks;
        for (const std::uint32_t other : of) ranks.push_back(peers_[of[rank]][other]);
        Result<World> made = World::open(agents_[of[rank]], ranks, options(name, rank));
        ASSERT_TRUE(made.has_value()) << made.error().to_string();
        worlds[rank] = std::move(*made);
      });
    }
    for (std::thread& each : threads) each.join();
    return worlds;
  }
  template <typename Call>
  static void on_all(std::vector<World>& worlds, Call call) {
    std::vector<std::thread> threads;
    for (World& world : worlds) threads.emplace_back([&call, &world] { call(world); });
    for (std::thread& thread : threads) thread.join();
  }
  static void sum(World& world, int rounds = 1, std::size_t count = 100) {
    for (int round = 0; round < rounds; ++round) {
      std::vector<float> data(count, static_cast<float>(world.rank() + 1));
      const Status status = world.all_reduce(data.data(), data.data(), count, DataType::kFloat32, ReduceOp::kSum);
      ASSERT_TRUE(status.ok()) << status.to_string();
      const auto n = static_cast<float>(world.size());
      ASSERT_EQ(data[count - 1], n * (n + 1) / 2);
    }
  }

  std::vector<Agent> agents_;
  std::vector<std::vector<Peer>> peers_;
};

TEST_P(GuestWorld, TwoWorldsOnOneAgentKeepApart) {
  open_agents(3);
  std::vector<World> all = open("all"), some = open("some", {2, 0});
  ASSERT_EQ(some.size(), 2U);
  EXPECT_EQ(some[0].rank(), 0U);
  std::vector<Request> requests;
  for (World& world : all) requests.push_back(world.ibarrier());
  for (World& world : some) requests.push_back(world.ibarrier());
  for (Request& each : requests) EXPECT_TRUE(each.wait(20s).ok()) << each.status().to_string();
  // The same ranks and tags, and different messages.
  Request one = all[0].isend(bytes_of("of all"), 2, 7), two = some[1].isend(bytes_of("of some"), 0, 7);
  std::string got(10, ' ');
  const Result<Received> received = some[0].receive(std::as_writable_bytes(std::span(got)), 1, 7);
  ASSERT_TRUE(received.has_value()) << received.error().to_string();
  EXPECT_EQ(got.substr(0, received->bytes), "of some");
  const Result<Received> other = all[2].receive(std::as_writable_bytes(std::span(got)), 0, 7);
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(got.substr(0, other->bytes), "of all");
  on_all(all, [](World& world) { sum(world, 40); });
  on_all(some, [](World& world) { sum(world, 40, 100'000); });
}

TEST_P(GuestWorld, TheAgentGoesOnWithAllElse) {
  open_agents(2);
  ASSERT_TRUE(agents_[1].open_channel(20).ok());
  std::vector<World> worlds = open("beside");
  constexpr std::uint64_t kBytes = 4096;
  const Region source = agents_[0].allocate({.name = "source", .size = kBytes}).value();
  const Region target = agents_[1].allocate({.name = "target", .size = kBytes}).value();
  source.bytes()[5] = std::byte{77};
  ASSERT_TRUE(peers_[0][1].await_regions({"target"}, 10s).ok());
  const std::array<std::uint32_t, 1> first{0};
  const Plan plan =
      agents_[0]
          .plan_write(peers_[0][1], source.table(kBytes), first, peers_[0][1].table("target", kBytes), first)
          .value();
  for (int round = 0; round < 20; ++round) {
    Transfer written = plan.submit({.notify = "round " + std::to_string(round)}).value();
    ASSERT_TRUE(peers_[0][1].send(20, bytes_of("mine"), 10s).has_value());
    on_all(worlds, [](World& world) { sum(world, 10); });
    ASSERT_TRUE(written.wait().ok());
    std::optional<Notification> note;
    std::optional<Message> message;
    const auto until = std::chrono::steady_clock::now() + 10s;
    while ((!note || !message) && std::chrono::steady_clock::now() < until) {
      if (!note) note = agents_[1].take_notification();
      if (!message) message = agents_[1].take_message(20);
      static_cast<void>(agents_[1].wait(1ms));
    }
    ASSERT_TRUE(note && message) << round;
    EXPECT_EQ(note->text, "round " + std::to_string(round));
    EXPECT_EQ(message->bytes, "mine");
    EXPECT_EQ(target.bytes()[5], std::byte{77});
  }
}

TEST_P(GuestWorld, ClosingAWorldLeavesTheAgentAndItsOtherWorlds) {
  open_agents(3);
  std::vector<World> one = open("one"), two = open("two");
  const std::string large(1 << 20, 'x');
  std::string got(1 << 20, ' ');
  // Under way when rank 2 closes: for a receive that never comes, and from a send that never comes.
  Request never_taken = one[0].isend(bytes_of(large), 2, 1);
  Request never_sent = one[1].ireceive(std::as_writable_bytes(std::span(got)), 2, 1);
  Request from_any = one[1].ireceive(std::as_writable_bytes(std::span(got)).first(8), kAnySource, 99);
  Request barrier = one[0].ibarrier();
  ASSERT_TRUE(one[2].close(5s).ok());
  for (Request* const each : {&never_taken, &never_sent, &from_any, &barrier}) {
    const Status status = each->wait(10s);
    EXPECT_EQ(status.code(), Code::kDisconnected) << status.to_string();
    EXPECT_NE(status.to_string().find("rank 2"), std::string::npos) << status.to_string();
  }
  EXPECT_EQ(one[0].failed(), std::vector<std::uint32_t>{2});
  EXPECT_EQ(one[0].send(bytes_of("late"), 2, 1).code(), Code::kDisconnected);
  EXPECT_EQ(one[0].call(2, "late", {}, {.timeout = 10s}).error().code(), Code::kDisconnected);
  on_all(two, [](World& world) { sum(world, 20); });
  // The two go on without it.
  std::vector<World> rest(2);
  std::thread other([&] { rest[1] = one[1].shrink().value(); });
  rest[0] = one[0].shrink().value();
  other.join();
  EXPECT_EQ(rest[0].size(), 2U);
  on_all(rest, [](World& world) { sum(world, 5); });
  on_all(rest, [](World& world) { EXPECT_TRUE(world.shutdown(10s).ok()); });
  on_all(two, [](World& world) { EXPECT_TRUE(world.shutdown(10s).ok()); });
  EXPECT_TRUE(agents_[0].card().has_value());
  std::vector<World> three = open("three");  // The agents are as good as before.
  on_all(three, [](World& world) { sum(world, 5); });
}

TEST_P(GuestWorld, GroupsEndWithTheirWorldAndNoOthers) {
  open_agents(2);
  std::vector<World> one = open("one"), two = open("two");
  std::vector<World> of_one, of_two;
  for (World& world : one) of_one.push_back(world.duplicate().value());
  for (World& world : two) of_two.push_back(world.duplicate().value());
  std::string got(8, ' ');
  Request waits = of_one[1].ireceive(std::as_writable_bytes(std::span(got)), 0, 1);
  ASSERT_TRUE(one[0].close(5s).ok());
  EXPECT_EQ(waits.wait(10s).code(), Code::kDisconnected) << waits.status().to_string();
  EXPECT_FALSE(of_one[0].barrier().ok());
  on_all(of_two, [](World& world) { sum(world, 5); });
}

TEST_P(GuestWorld, ARankThatLeftIsNobodyToSendTo) {
  open_agents(2);
  std::vector<World> worlds = open("left");
  std::string got(8, ' ');
  Request before = worlds[1].isend(bytes_of("word"), 0, 3);
  Request waits = worlds[0].ireceive(std::as_writable_bytes(std::span(got)), 1, 9);
  ASSERT_TRUE(worlds[1].leave(10s).ok());
  const Result<Received> received = worlds[0].receive(std::as_writable_bytes(std::span(got)), 1, 3);
  ASSERT_TRUE(received.has_value()) << received.error().to_string();  // It was sent before.
  EXPECT_EQ(waits.wait(10s).code(), Code::kDisconnected) << waits.status().to_string();
  EXPECT_EQ(worlds[0].send(bytes_of("late"), 1, 1).code(), Code::kDisconnected);
  EXPECT_EQ(worlds[0].receive(std::as_writable_bytes(std::span(got)), 1, 4).error().code(), Code::kDisconnected);
  EXPECT_TRUE(worlds[0].failed().empty());
}

TEST_P(GuestWorld, ClosingTheAgentEndsItsWorlds) {
  open_agents(2);
  std::vector<World> one = open("one"), two = open("two");
  std::string got(8, ' ');
  Request waits = one[0].ireceive(std::as_writable_bytes(std::span(got)), kAnySource, std::nullopt);
  Request there = two[1].ireceive(std::as_writable_bytes(std::span(got)), 0, 1);
  Status barrier;
  std::thread in_barrier([&] { barrier = two[0].barrier(); });
  ASSERT_TRUE(agents_[0].close(10s).ok());
  in_barrier.join();
  EXPECT_EQ(waits.wait(5s).code(), Code::kCancelled) << waits.status().to_string();
  EXPECT_FALSE(barrier.ok());
  EXPECT_EQ(there.wait(10s).code(), Code::kDisconnected) << there.status().to_string();
  EXPECT_EQ(one[0].send(bytes_of("late"), 1, 1).code(), Code::kInvalid);
  EXPECT_EQ(one[0].barrier().code(), Code::kInvalid);
  EXPECT_TRUE(one[0].close(1s).ok());
}

TEST_P(GuestWorld, WrongOnesAreRefused) {
  open_agents(2);
  const auto refused = [&](std::vector<Peer> ranks, const WorldOptions& with, const char* why) {
    const Result<World> made = World::open(agents_[0], ranks, with);
    ASSERT_FALSE(made.has_value()) << why;
    EXPECT_EQ(made.error().code(), Code::kInvalid) << made.error().to_string();
    EXPECT_NE(made.error().to_string().find(why), std::string::npos) << made.error().to_string();
  };
  refused({}, options("w", 0), "no ranks are given");
  refused({peers_[0][1], peers_[0][0]}, options("w", 0), "another peer is given for it");
  refused({Peer(), Peer()}, options("w", 0), "has no peer");
  refused({Peer(), peers_[1][0]}, options("w", 0), "of another agent");
  refused({Peer(), peers_[0][1], peers_[0][1]}, options("w", 0), "given twice");
  refused({Peer(), peers_[0][1]}, options("w", 7), "rank 7");
  WorldOptions sized = options("w", 0);
  sized.size = 3;
  refused({Peer(), peers_[0][1]}, sized, "2 ranks are given");
  WorldOptions sparse = options("w", 0);
  sparse.topology = Topology::hypercube();
  const std::vector<Peer> both{Peer(), peers_[0][1]};
  EXPECT_EQ(World::open(agents_[0], both, sparse).error().code(), Code::kUnsupported);
  Agent empty;
  EXPECT_EQ(World::open(empty, both, options("w", 0)).error().code(), Code::kInvalid);
  WorldOptions alone = options("w", 0);
  alone.size = 2;
  EXPECT_EQ(World::open(agents_[0], alone).error().code(), Code::kInvalid);  // Nowhere to meet.
  std::vector<World> worlds = open("taken");
  refused({Peer(), peers_[0][1]}, options("taken", 0), "is, or was, in a world 'taken'");
  on_all(worlds, [](World& world) { EXPECT_TRUE(world.shutdown(10s).ok()); });
  refused({Peer(), peers_[0][1]}, options("taken", 0), "is, or was, in a world 'taken'");
}

TEST_P(GuestWorld, RanksFindOneAnotherAtAStore) {
  MemoryStore store;
  agents_.push_back(make_agent("here"));
  // A rank with an agent of its own among them.
  std::vector<World> worlds(2);
  std::thread own([&] {
    WorldOptions with = options("met", 1);
    with.size = 2;
    with.agent.backends = {{.name = GetParam()}};
    with.store = store.store();
    worlds[1] = World::open(with).value();
  });
  WorldOptions with = options("met", 0);
  with.size = 2;
  with.store = store.store();
  Result<World> made = World::open(agents_[0], with);
  own.join();
  ASSERT_TRUE(made.has_value()) << made.error().to_string();
  worlds[0] = std::move(*made);
  on_all(worlds, [](World& world) { sum(world, 20); });
  std::map<std::string, ConfigValue> told;
  for (const ConfigValue& each : worlds[0].config()) told[each.name] = each;
  EXPECT_EQ(told["world.place"].value, "a store");
  EXPECT_EQ(told["name"].value, "here");
  EXPECT_EQ(told["name"].origin, "agent");
  on_all(worlds, [](World& world) { EXPECT_TRUE(world.shutdown(10s).ok()); });
  EXPECT_TRUE(agents_[0].card().has_value());
}

TEST_P(GuestWorld, RanksFindOneAnotherInTheAgentsDirectory) {
  for (const char* const name : {"first", "second"}) {
    agents_.push_back(make_agent(name, inproc_directory("guests-" + GetParam())));
  }
  std::vector<World> worlds(2);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      WorldOptions with = options("listed", rank);
      with.size = 2;
      Result<World> made = World::open(agents_[rank], with);
      ASSERT_TRUE(made.has_value()) << made.error().to_string();
      worlds[rank] = std::move(*made);
    });
  }
  for (std::thread& each : threads) each.join();
  on_all(worlds, [](World& world) { sum(world, 20); });
}

TEST_P(GuestWorld, TheAgentsOwnDriverStays) {
  open_agents(2);
  Driver driver = Driver::start().value();
  ASSERT_TRUE(driver.attach(agents_[0]).ok());
  std::vector<World> worlds = open("driven");
  on_all(worlds, [](World& world) { sum(world, 20); });
  worlds.clear();
  EXPECT_TRUE(driver.detach(agents_[0]).ok());
  // The library's thread, which drove the other agent, has let it go.
  EXPECT_TRUE(driver.attach(agents_[1]).ok());
  EXPECT_TRUE(driver.detach(agents_[1]).ok());
}

TEST_P(GuestWorld, AThreadForEachWorldOfOneAgent) {
  open_agents(2);
  constexpr int kWorlds = 4;
  std::vector<std::vector<World>> all;
  for (int i = 0; i < kWorlds; ++i) all.push_back(open("w" + std::to_string(i)));
  std::vector<std::thread> threads;
  for (auto& worlds : all) {
    for (World& world : worlds) {
      threads.emplace_back([&world] {
        sum(world, 100);
        EXPECT_TRUE(world.shutdown(20s).ok());
      });
    }
  }
  for (std::thread& each : threads) each.join();
}

TEST_P(GuestWorld, HandlersOfOneWorldMayCallAnother) {
  open_agents(2);
  std::vector<World> one = open("one"), two = open("two");
  ASSERT_TRUE(two[0]
                  .register_handler(7,
                                    [](const IncomingCall& call) -> Result<CallAnswer> {
                                      EXPECT_EQ(call.name, "7");
                                      return CallAnswer(call.arguments.begin(), call.arguments.end());
                                    })
                  .ok());
  ASSERT_TRUE(
      one[1]
          .register_handler(
              "forward", [&](const IncomingCall& call) { return two[1].call(0, 7, call.arguments, {.timeout = 10s}); })
          .ok());
  // In the middle of the turn a call would wait for the thread that it is made on, whichever world it is of.
  HandlerOptions at_once;
  at_once.runs_inline = true;
  ASSERT_TRUE(one[1]
                  .register_handler(
                      "inline",
                      [&](const IncomingCall& call) { return two[1].call(0, 7, call.arguments, {.timeout = 10s}); },
                      at_once)
                  .ok());
  const Result<CallAnswer> answer = one[0].call(1, "forward", bytes_of("round"), {.timeout = 20s});
  ASSERT_TRUE(answer.has_value()) << answer.error().to_string();
  EXPECT_EQ(answer->size(), 5U);
  EXPECT_EQ(one[0].call(1, "inline", bytes_of("round"), {.timeout = 20s}).error().code(), Code::kInvalid);
}

INSTANTIATE_TEST_SUITE_P(Backends, GuestWorld, testing::Values("shm", "tcp"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace hawser
