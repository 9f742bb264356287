// What a world does by itself once a rank has failed.

#include <gtest/gtest.h>

#include <hawser/directory.h>
#include <hawser/world.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "../must.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

std::vector<World> open_with(std::uint32_t size, RecoveryPolicy recovery, std::optional<Quorum> quorum = {},
                             const std::string& topology = "full") {
  WorldOptions options;
  options.timeout = 20s;
  options.recovery = recovery;
  options.quorum = quorum;
  options.topology = must(parse_topology(topology));
  return must(World::local(size, options));
}

void expect_all_well(std::vector<World>& worlds) {
  std::vector<std::int64_t> sums(worlds.size(), 1);
  std::vector<Request> requests;
  for (std::size_t i = 0; i < worlds.size(); ++i) {
    requests.push_back(worlds[i].iall_reduce(&sums[i], &sums[i], 1, DataType::kInt64, ReduceOp::kSum));
  }
  for (std::size_t i = 0; i < worlds.size(); ++i) {
    const Status status = requests[i].wait(20s);
    EXPECT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(sums[i], static_cast<std::int64_t>(worlds.size()));
  }
}

void expect_names(const Status& status, const std::string& part) {
  EXPECT_EQ(status.code(), Code::kDisconnected) << status.to_string();
  EXPECT_NE(status.to_string().find(part), std::string::npos) << status.to_string();
}

/// The rank's worlds until there are no more events, each event noted.
World follow(World world, std::vector<std::vector<std::uint32_t>>& failed, std::uint32_t until) {
  while (world.size() > until) {
    Result<Recovered> event = world.recovered(20s);
    if (!event) {
      ADD_FAILURE() << event.error().to_string();
      break;
    }
    EXPECT_EQ(event->old_rank, world.rank());
    EXPECT_EQ(event->world.old_rank(event->world.rank()), world.rank());
    EXPECT_EQ(event->world.epoch(), world.epoch() + 1);
    EXPECT_EQ(event->world.size() + event->failed.size(), world.size());
    failed.push_back(event->failed);
    world = std::move(event->world);
  }
  return world;
}

class Automatic : public testing::TestWithParam<std::string> {};

TEST_P(Automatic, EachFailureGivesOneEventAndTheNextWorldWorks) {
  std::vector<World> worlds = open_with(5, RecoveryPolicy::kAutomatic, {}, GetParam());
  expect_all_well(worlds);
  for (std::uint32_t size = 4; size >= 2; --size) {
    const std::uint32_t victim = size / 2;
    EXPECT_TRUE(worlds[victim].close(5s).ok());
    std::vector<World> next;
    for (std::uint32_t rank = 0; rank <= size; ++rank) {
      if (rank == victim) continue;
      Result<Recovered> event = worlds[rank].recovered(20s);
      ASSERT_TRUE(event.has_value()) << event.error().to_string();
      EXPECT_EQ(event->old_rank, rank);
      EXPECT_EQ(event->failed, std::vector<std::uint32_t>{victim});
      EXPECT_EQ(event->world.size(), size);
      EXPECT_EQ(worlds[rank].recovered(0s).error().code(), Code::kInvalid) << "it was taken";
      EXPECT_FALSE(worlds[rank].barrier().ok()) << "the old world stays as it is";
      next.push_back(std::move(event->world));
    }
    worlds = std::move(next);
    expect_all_well(worlds);
    for (World& world : worlds) {
      EXPECT_EQ(world.recovered(0s).error().code(), Code::kTimedOut) << "nothing has failed here";
      EXPECT_TRUE(world.failed().empty());
    }
  }
}

TEST_P(Automatic, RanksThatDieMeanwhileAreEachOfOneEvent) {
  for (int round = 0; round < 10; ++round) {
    std::vector<World> worlds = open_with(7, RecoveryPolicy::kAutomatic, {}, GetParam());
    const std::vector<std::uint32_t> victims = {1, 4, 6};
    std::vector<std::thread> threads;
    for (const std::uint32_t victim : victims) {
      threads.emplace_back([&worlds, victim] { EXPECT_TRUE(worlds[victim].close(5s).ok()); });
    }
    std::vector<World> last;
    for (const std::uint32_t rank : {0U, 2U, 3U, 5U}) {
      std::vector<std::vector<std::uint32_t>> failed;
      last.push_back(follow(std::move(worlds[rank]), failed, 4));
      std::size_t count = 0;
      for (const std::vector<std::uint32_t>& each : failed) {
        EXPECT_FALSE(each.empty());
        count += each.size();
      }
      EXPECT_EQ(count, victims.size());
    }
    for (std::thread& thread : threads) thread.join();
    expect_all_well(last);
    for (World& world : last) EXPECT_EQ(world.recovered(0s).error().code(), Code::kTimedOut);
  }
}

INSTANTIATE_TEST_SUITE_P(Topologies, Automatic, testing::Values("full", "regular:4"),
                         [](const auto& one) { return one.param.substr(0, 4); });

TEST(Recovery, ByHandNothingHappens) {
  std::vector<World> worlds = open_with(3, RecoveryPolicy::kManual);
  EXPECT_TRUE(worlds[2].close(5s).ok());
  EXPECT_EQ(worlds[0].failures(0, 10s), std::vector<std::uint32_t>{2});
  const Result<Recovered> event = worlds[0].recovered(50ms);
  ASSERT_FALSE(event.has_value());
  EXPECT_EQ(event.error().code(), Code::kInvalid);
  EXPECT_NE(event.error().to_string().find("does not recover by itself"), std::string::npos);
}

TEST(Recovery, AnAgreementUnderWayEndsAndNamesTheRank) {
  std::vector<World> worlds = open_with(4, RecoveryPolicy::kAutomatic);
  std::vector<Request> agreements;
  for (const std::uint32_t rank : {0U, 1U}) agreements.push_back(worlds[rank].iagree(true));
  EXPECT_TRUE(worlds[3].close(5s).ok());  // Rank 2 has not agreed: it only recovers.
  for (Request& each : agreements) expect_names(each.wait(20s), "rank 3 of world 'world' failed");
  std::vector<World> next;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    Result<Recovered> event = worlds[rank].recovered(20s);
    ASSERT_TRUE(event.has_value()) << event.error().to_string();
    next.push_back(std::move(event->world));
  }
  expect_all_well(next);
  EXPECT_EQ(worlds[0].agree(true).error().code(), Code::kBusy);
  EXPECT_EQ(worlds[0].shrink().error().code(), Code::kBusy);
}

TEST(Recovery, AProgramMayLeaveOutARank) {
  std::vector<World> worlds = open_with(4, RecoveryPolicy::kAutomatic);
  Request request = worlds[0].ishrink(std::vector<std::uint32_t>{2});
  EXPECT_TRUE(request.wait(20s).ok()) << request.status().to_string();
  std::vector<World> next;
  next.push_back(must(worlds[0].shrunk(request)));
  for (const std::uint32_t rank : {1U, 3U}) {
    Result<Recovered> event = worlds[rank].recovered(20s);
    ASSERT_TRUE(event.has_value()) << event.error().to_string();
    next.push_back(std::move(event->world));
  }
  expect_all_well(next);
  EXPECT_EQ(worlds[0].recovered(0s).error().code(), Code::kInvalid) << "it has the world already";
  expect_names(worlds[2].recovered(20s).error(), "holds this rank, 2, for failed");
}

TEST(Recovery, AMajorityIsTheDefaultOfAutomatic) {
  for (const bool any : {false, true}) {
    std::vector<World> worlds =
        open_with(4, RecoveryPolicy::kAutomatic, any ? std::optional(Quorum::kNone) : std::nullopt);
    const Result<World> half = worlds[0].shrink(std::vector<std::uint32_t>{1, 2, 3});
    EXPECT_EQ(half.has_value(), any);
    EXPECT_EQ(half.error().code(), any ? Code::kOk : Code::kDenied);
  }
}

TEST(Recovery, AGroupEndsWithItsWorld) {
  std::vector<World> worlds = open_with(3, RecoveryPolicy::kAutomatic);
  std::vector<World> groups;
  for (World& world : worlds) groups.push_back(must(world.duplicate()));
  EXPECT_TRUE(worlds[2].close(5s).ok());
  for (const std::uint32_t rank : {0U, 1U}) ASSERT_TRUE(worlds[rank].recovered(20s).has_value());
  EXPECT_EQ(groups[0].recovered(0s).error().code(), Code::kInvalid);
  expect_names(groups[0].barrier(), "rank 2");
}

TEST(Recovery, AnEventThatNobodyTakesClosesTheRankWithItsWorld) {
  // Whether rank 2 closes before the next world is made there, while it is made, or afterwards.
  std::vector<World> worlds = open_with(4, RecoveryPolicy::kAutomatic);
  std::thread closes([&] { EXPECT_TRUE(worlds[3].close(5s).ok()); });
  std::vector<std::vector<std::uint32_t>> failed;
  EXPECT_EQ(worlds[2].failures(0, 20s), std::vector<std::uint32_t>{3});
  EXPECT_TRUE(worlds[2].close(5s).ok());
  closes.join();
  World first = follow(std::move(worlds[0]), failed, 2);
  World second = follow(std::move(worlds[1]), failed, 2);
  for (const World* const each : {&first, &second}) EXPECT_EQ(each->size(), 2U);
  EXPECT_EQ(worlds[2].recovered(0s).error().code(), Code::kCancelled);
}

TEST(Recovery, AClosedWorldGivesNone) {
  std::vector<World> worlds = open_with(2, RecoveryPolicy::kAutomatic);
  std::thread closes([&] { EXPECT_TRUE(worlds[0].close(5s).ok()); });
  const Result<Recovered> event = worlds[0].recovered(20s);
  closes.join();
  ASSERT_FALSE(event.has_value());
  EXPECT_EQ(event.error().code(), Code::kCancelled) << event.error().to_string();
}

TEST(Recovery, AnAbortEndsAllOperationsAndNamesTheRank) {
  std::vector<World> worlds = open_with(4, RecoveryPolicy::kAbort);
  std::vector<World> apart;
  for (const std::uint32_t rank : {0U, 1U}) apart.push_back(must(worlds[rank].group(std::vector<std::uint32_t>{0, 1})));
  must(worlds[1].register_handler("never", [](const IncomingCall& call) -> Result<CallAnswer> {
    while (!call.is_cancelled()) std::this_thread::yield();
    return CallAnswer();
  }));
  std::vector<std::byte> large(1 << 20), buffer(16);
  std::vector<Request> pending;
  pending.push_back(worlds[0].ireceive(buffer, 1, 7));
  pending.push_back(worlds[0].isend(large, 1, 8));
  pending.push_back(worlds[0].icall(1, "never", {}));
  pending.push_back(worlds[0].ibarrier());
  pending.push_back(worlds[0].iagree(true));
  EXPECT_TRUE(worlds[3].close(5s).ok());
  for (std::size_t i = 0; i < pending.size(); ++i) {
    SCOPED_TRACE(i);
    expect_names(pending[i].wait(20s), "rank 3 of world 'world' failed");
  }
  expect_names(worlds[0].send(buffer, 1, 9), "rank 3");
  expect_names(worlds[0].receive(buffer, 1, 9).error(), "rank 3");
  expect_names(worlds[0].barrier(), "rank 3");
  expect_names(worlds[0].agree(true).error(), "rank 3");
  expect_names(worlds[0].call(1, "never", {}).error(), "rank 3");
  expect_all_well(apart);
}

/// By rank, how `open` ends.
std::vector<Status> open_apart(const std::vector<WorldOptions>& all) {
  const std::shared_ptr<Directory> directory = inproc_directory();
  std::vector<Status> ends(all.size());
  std::vector<std::optional<World>> worlds(all.size());
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    threads.emplace_back([&, rank] {
      WorldOptions options = all[rank];
      options.size = static_cast<std::uint32_t>(all.size());
      options.rank = rank;
      options.agent.directory = directory;
      options.join_timeout = 20s;
      Result<World> world = World::open(std::move(options));
      if (!world) ends[rank] = world.error();
      if (world) worlds[rank] = std::move(*world);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

TEST(Recovery, AllRanksOpenWithTheSame) {
  std::vector<WorldOptions> all(3);
  for (WorldOptions& each : all) each.recovery = RecoveryPolicy::kAutomatic;
  for (const Status& end : open_apart(all)) EXPECT_TRUE(end.ok()) << end.to_string();
  all[1].recovery = RecoveryPolicy::kManual;
  for (const Status& end : open_apart(all)) {
    EXPECT_EQ(end.code(), Code::kInvalid) << end.to_string();
    EXPECT_NE(end.to_string().find("full, recovery automatic"), std::string::npos) << end.to_string();
  }
  all[1].recovery = RecoveryPolicy::kAutomatic;
  all[2].quorum = Quorum::kNone;
  for (const Status& end : open_apart(all)) {
    EXPECT_EQ(end.code(), Code::kInvalid) << end.to_string();
    EXPECT_NE(end.to_string().find("quorum none"), std::string::npos) << end.to_string();
  }
}

}  // namespace
}  // namespace hawser
