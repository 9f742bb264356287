// Worlds whose ranks find one another at a seed. Between processes: test/python/world_test.py.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <hawser/seed.h>
#include <hawser/world.h>

#include <chrono>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../real/relay.h"
#include "base/address.h"
#include "base/test_folder.h"
#include "identity/world_token.h"
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

TEST(WorldSeedTest, RanksThatNameOtherBackendsReachItOverTcp) {
  AgentOptions named;
  named.backends = {shm()};
  const Result<WorldSeed> seed = WorldSeed::open(named);
  ASSERT_TRUE(seed.has_value()) << seed.error().to_string();
  std::vector<std::future<Result<World>>> opening;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    WorldOptions options = rank_of(rank, 2, seed->address());
    options.agent = named;
    opening.push_back(std::async(std::launch::async, [options] { return World::open(options); }));
  }
  expect_barrier(std::move(opening));
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

/// A token in a file, and how the agents of a test meet: on loopback in clear, or by TLS.
class TokenTest : public testing::TestWithParam<Security> {
 protected:
  std::string file(std::string_view text) {
    const std::string path = folder_.path("token-" + std::to_string(++files_));
    std::ofstream(path) << text << "\n";
    EXPECT_EQ(::chmod(path.c_str(), 0600), 0);
    return path;
  }
  AgentOptions agent() const {
    AgentOptions options;
    options.security = GetParam();
    return options;
  }
  WorldOptions with_token(std::uint32_t rank, std::uint32_t size, const WorldSeed& seed, const std::string& token) {
    WorldOptions options = rank_of(rank, size, seed.address("127.0.0.1"));
    options.agent = agent();
    options.token_file = token;
    return options;
  }
  std::vector<std::future<Result<World>>> open(std::uint32_t size, const WorldSeed& seed) {
    std::vector<std::future<Result<World>>> opening;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      opening.push_back(std::async(std::launch::async,
                                   [options = with_token(rank, size, seed, token_)] { return World::open(options); }));
    }
    return opening;
  }

  const base::TestFolder folder_{"hawser-token"};
  int files_ = 0;
  const std::string token_ = file("Jc7p1q0wX9bTzR4nUe2LkA==");
};

TEST_P(TokenTest, RanksThatHaveItFindOneAnotherWithoutATicket) {
  const Result<WorldSeed> seed = WorldSeed::open(agent(), token_);
  ASSERT_TRUE(seed.has_value()) << seed.error().to_string();
  EXPECT_EQ(seed->address().find('#'), std::string::npos);
  expect_barrier(open(3, *seed));
}

TEST_P(TokenTest, AnotherTokenIsDeniedOnItsRankAloneAndDisturbsNobody) {
  const Result<WorldSeed> seed = WorldSeed::open(agent(), token_);
  ASSERT_TRUE(seed.has_value()) << seed.error().to_string();
  const std::string wrong = file("Jc7p1q0wX9bTzR4nUe2LkB==");
  auto opening = open(2, *seed);
  const Result<World> intruder = World::open(with_token(1, 2, *seed, wrong));
  ASSERT_FALSE(intruder.has_value());
  EXPECT_EQ(intruder.error().code(), Code::kDenied) << intruder.error().to_string();
  EXPECT_NE(intruder.error().to_string().find("does not have the token of this rank"), std::string::npos);
  EXPECT_EQ(intruder.error().to_string().find("Jc7p"), std::string::npos) << "no error holds a token";
  expect_barrier(std::move(opening));
}

TEST_P(TokenTest, WithoutItNobodyIsServed) {
  const Result<WorldSeed> seed = WorldSeed::open(agent(), token_);
  ASSERT_TRUE(seed.has_value()) << seed.error().to_string();
  auto client = runtime::SeedClient::open(seed->address("127.0.0.1"), agent(), 3s);
  if (!client) return;  // Over TLS it does not even come in.
  EXPECT_EQ((*client)->set("hawser/world/0", "a card").code(), Code::kDenied);
  EXPECT_EQ((*client)->get("hawser/world/0", 1s).error().code(), Code::kDenied);
}

TEST_P(TokenTest, ASeedThatHasNoneIsNoSeedOfThisWorld) {
  const Result<WorldSeed> seed = WorldSeed::open(agent());
  ASSERT_TRUE(seed.has_value()) << seed.error().to_string();
  std::string address = seed->address("127.0.0.1");
  WorldOptions options = with_token(0, 2, *seed, token_);
  options.seed = address.substr(0, address.find('#'));
  EXPECT_EQ(World::open(std::move(options)).error().code(), Code::kDenied);
}

TEST_P(TokenTest, NobodyListensIsAnotherError) {
  WorldOptions options = rank_of(0, 2, "127.0.0.1:1");
  options.agent = agent();
  options.token_file = token_;
  options.join_timeout = 2s;
  const Result<World> world = World::open(std::move(options));
  ASSERT_FALSE(world.has_value());
  EXPECT_NE(world.error().to_string().find("cannot be reached"), std::string::npos) << world.error().to_string();
}

TEST_P(TokenTest, ItStandsInForATicketAndNeedsASeed) {
  WorldOptions options = rank_of(0, 2, "seed@127.0.0.1:1#ticket");
  options.token_file = token_;
  EXPECT_EQ(World::open(options).error().code(), Code::kInvalid);
  options.seed.clear();
  EXPECT_EQ(World::open(options).error().code(), Code::kInvalid);
  options.seed = "127.0.0.1:1";
  options.agent.security = Security::kNone;
  EXPECT_EQ(World::open(options).error().code(), Code::kInvalid);
  EXPECT_EQ(WorldSeed::open(options.agent, token_).error().code(), Code::kInvalid);
}

// S5: the first to prove the token and to say so is the rank, and nobody is two.
TEST_P(TokenTest, ARankHasItsOwnEntryAlone) {
  const Result<WorldSeed> seed = WorldSeed::open(agent(), token_);
  ASSERT_TRUE(seed.has_value()) << seed.error().to_string();
  const identity::WorldToken token = identity::WorldToken::read(token_).value();
  const auto open = [&] { return runtime::SeedClient::open(seed->address("127.0.0.1"), agent(), 30s, token); };
  auto first = open(), second = open();
  ASSERT_TRUE(first.has_value() && second.has_value());
  ASSERT_TRUE((*first)->set("hawser/w/0", "a card").ok());
  EXPECT_EQ((*first)->set("hawser/w/1", "a second card").code(), Code::kDenied);
  const Status taken = (*second)->set("hawser/w/0", "mine");
  EXPECT_EQ(taken.code(), Code::kDenied);
  EXPECT_NE(taken.to_string().find("rank 0 of world 'w' is 'seed-client-"), std::string::npos) << taken.to_string();
  EXPECT_EQ((*second)->get("hawser/w/0", 10s).value(), "a card");
  EXPECT_TRUE((*second)->set("hawser/w/1", "its own").ok());
  first->reset();
  const Status after = (*open())->set("hawser/w/0", "a new card");
  EXPECT_TRUE(after.ok()) << "the number is free at once: " << after.to_string();
}

TEST_P(TokenTest, ASecondClaimantOfARankIsRefusedAndTheWorldForms) {
  const Result<WorldSeed> seed = WorldSeed::open(agent(), token_);
  ASSERT_TRUE(seed.has_value()) << seed.error().to_string();
  auto rank1 = std::async(std::launch::async, [&] { return World::open(with_token(1, 3, *seed, token_)); });
  const identity::WorldToken token = identity::WorldToken::read(token_).value();
  auto looker = runtime::SeedClient::open(seed->address("127.0.0.1"), agent(), 30s, token);
  ASSERT_TRUE(looker.has_value());
  ASSERT_TRUE((*looker)->get("hawser/world/1", 30s).has_value());
  const Result<World> second = World::open(with_token(1, 3, *seed, token_));
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code(), Code::kDenied);
  EXPECT_NE(second.error().to_string().find("rank 1 of world 'world' is '"), std::string::npos)
      << second.error().to_string();
  std::vector<std::future<Result<World>>> opening;
  for (const std::uint32_t rank : {0u, 2u}) {
    opening.push_back(std::async(std::launch::async,
                                 [options = with_token(rank, 3, *seed, token_)] { return World::open(options); }));
  }
  opening.insert(opening.begin() + 1, std::move(rank1));
  expect_barrier(std::move(opening));
}

/// An acceptor that is overrun ends connections without a word, as one without the token does.
TEST_P(TokenTest, ASeedThatEndsConnectionsIsAskedAgain) {
  const Result<WorldSeed> seed = WorldSeed::open(agent(), token_);
  ASSERT_TRUE(seed.has_value()) << seed.error().to_string();
  const std::string address = seed->address("127.0.0.1");
  const auto place = base::parse_host_port(address.substr(address.find('@') + 1));
  ASSERT_TRUE(place.has_value());
  real::Relay relay(base::numeric_address(*place).value());
  const identity::WorldToken token = identity::WorldToken::read(token_).value();
  const auto open = [&] { return runtime::SeedClient::open("seed@" + relay.address(), agent(), 30s, token); };
  relay.refuse(3);
  const auto client = open();
  EXPECT_TRUE(client.has_value()) << client.error().to_string();
  EXPECT_EQ(relay.to_refuse(), 0U);
  relay.refuse(100);
  const auto never = open();
  ASSERT_FALSE(never.has_value());
  EXPECT_LT(relay.to_refuse(), 97U) << "it was asked some times,";
  EXPECT_GE(relay.to_refuse(), 90U) << "and no more";
}

INSTANTIATE_TEST_SUITE_P(Levels, TokenTest, testing::Values(Security::kDefault, Security::kEncrypt),
                         [](const auto& level) { return level.param == Security::kDefault ? "clear" : "tls"; });

TEST(WorldSeedTest, OnePlaceOnlyIsNamed) {
  WorldOptions options = rank_of(0, 2, "seed@127.0.0.1:1#x");
  options.store.set = [](const std::string&, const std::string&) { return Status(); };
  options.store.get = [](const std::string&, Duration) { return Result<std::string>(std::string()); };
  EXPECT_EQ(World::open(std::move(options)).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hawser
