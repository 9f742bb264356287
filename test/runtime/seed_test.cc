// Worlds whose ranks find one another at a seed. Between processes: test/python/world_test.py.

#include <gtest/gtest.h>

#include <hawser/seed.h>
#include <hawser/world.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/seed_client.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

WorldOptions rank_of(std::uint32_t rank, std::uint32_t size, const std::string& seed, const std::string& name = {}) {
  WorldOptions options;
  options.size = size;
  options.rank = rank;
  options.seed = seed;
  if (!name.empty()) options.name = name;
  options.join_timeout = 30s;
  options.timeout = 30s;
  return options;
}

std::vector<std::future<Result<World>>> open_all(std::uint32_t size, const std::string& seed, const std::string& name) {
  std::vector<std::future<Result<World>>> opening;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    opening.push_back(std::async(std::launch::async, [=] { return World::open(rank_of(rank, size, seed, name)); }));
  }
  return opening;
}

void expect_barrier(std::vector<std::future<Result<World>>> opening) {
  std::vector<World> worlds;
  for (auto& each : opening) {
    Result<World> world = each.get();
    ASSERT_TRUE(world.has_value()) << world.error().to_string();
    worlds.push_back(std::move(*world));
  }
  std::vector<std::future<Status>> passing;
  for (World& world : worlds) passing.push_back(std::async(std::launch::async, [&world] { return world.barrier(); }));
  for (auto& each : passing) {
    const Status status = each.get();
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
}

TEST(WorldSeedTest, RanksFindOneAnother) {
  const Result<WorldSeed> seed = WorldSeed::open();
  ASSERT_TRUE(seed.has_value()) << seed.error().to_string();
  const std::string address = seed->address();
  EXPECT_EQ(address.find("seed@"), 0u) << address;
  EXPECT_NE(address.find('#'), std::string::npos) << "its address holds no ticket: " << address;
  expect_barrier(open_all(4, address, "seeded"));
}

TEST(WorldSeedTest, TwoWorldsOfOneSeedStayApart) {
  const Result<WorldSeed> seed = WorldSeed::open();
  ASSERT_TRUE(seed.has_value()) << seed.error().to_string();
  auto first = open_all(2, seed->address(), "one"), second = open_all(3, seed->address(), "two");
  expect_barrier(std::move(first));
  expect_barrier(std::move(second));
}

TEST(WorldSeedTest, ItsAddressTakesAHostsName) {
  const Result<WorldSeed> seed = WorldSeed::open();
  ASSERT_TRUE(seed.has_value()) << seed.error().to_string();
  EXPECT_EQ(seed->address("node1.cluster").find("seed@node1.cluster:"), 0u);
}

TEST(WorldSeedTest, AWrongTicketOpensNothing) {
  const Result<WorldSeed> seed = WorldSeed::open();
  ASSERT_TRUE(seed.has_value()) << seed.error().to_string();
  std::string address = seed->address();
  const std::size_t ticket = address.find('#') + 1;
  address[ticket + 2] = address[ticket + 2] == 'A' ? 'B' : 'A';
  WorldOptions options = rank_of(0, 2, address);
  options.join_timeout = 3s;
  const Result<World> world = World::open(std::move(options));
  ASSERT_FALSE(world.has_value());
  EXPECT_NE(world.error().to_string().find("the world's seed cannot be reached"), std::string::npos)
      << world.error().to_string();
}

TEST(WorldSeedTest, WhoDoesNotComeIsNamed) {
  const Result<WorldSeed> seed = WorldSeed::open();
  ASSERT_TRUE(seed.has_value()) << seed.error().to_string();
  WorldOptions options = rank_of(0, 3, seed->address());
  options.join_timeout = 1s;
  const Result<World> world = World::open(std::move(options));
  ASSERT_FALSE(world.has_value());
  EXPECT_NE(world.error().to_string().find("1, 2"), std::string::npos) << world.error().to_string();
}

TEST(WorldSeedTest, ASeedThatIsGoneEndsTheWait) {
  Result<WorldSeed> seed = WorldSeed::open();
  ASSERT_TRUE(seed.has_value()) << seed.error().to_string();
  auto client = runtime::SeedClient::open(seed->address(), AgentOptions(), 30s);
  ASSERT_TRUE(client.has_value()) << client.error().to_string();
  auto waits = std::async(std::launch::async, [&] { return (*client)->get("nobody sets it", 100s); });
  std::this_thread::sleep_for(50ms);  // So that it waits, as a rule; the outcome is the same where it does not yet.
  { const WorldSeed gone = std::move(*seed); }
  EXPECT_EQ(waits.get().error().code(), Code::kDisconnected);
}

TEST(WorldSeedTest, OnePlaceOnlyIsNamed) {
  WorldOptions options = rank_of(0, 2, "seed@127.0.0.1:1#x");
  options.store.set = [](const std::string&, const std::string&) { return Status(); };
  options.store.get = [](const std::string&, Duration) { return Result<std::string>(std::string()); };
  EXPECT_EQ(World::open(std::move(options)).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hawser
