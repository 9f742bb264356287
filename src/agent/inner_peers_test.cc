// What layers above learn of peers and cards by the inner door, on agents over tcp.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include <hawser/hawser.h>

#include "agent/inner_peers.h"
#include "agent/open.h"
#include "backend/tcp/factory.h"
#include "base/bytes.h"
#include "wire/card.h"

namespace hawser::agent::inner {
namespace {

using namespace std::chrono_literals;

/// An agent with the regions "a" and "b".
struct Owner {
  explicit Owner(const std::string& name)
      : agent(open_with({.name = name, .backends = {tcp()}}, {backend::tcp_factory()}).value()),
        a(agent.add_region({.name = "a", .bytes = memory}).value()),
        b(agent.add_region({.name = "b", .bytes = memory}).value()) {}

  /// Views end with the next call.
  wire::Card card(const std::vector<std::uint32_t>& only = {}) {
    bytes.clear();
    const Status status = only.empty() ? append_card(agent, &bytes) : append_card(agent, only, &bytes);
    EXPECT_TRUE(status.ok()) << status.to_string();
    return wire::decode_card(base::as_bytes(bytes)).value();
  }

  std::vector<std::byte> memory = std::vector<std::byte>(64);
  std::string bytes;
  Agent agent;
  Region a, b;
};

RegionId id_of(const wire::CardRegion& told) {
  return {.index = told.index, .generation = told.generation, .key = told.key};
}

TEST(InnerPeers, ACardOfSomeRegionsIsThatOfAllWithoutTheOthers) {
  Owner owner("owner");
  const auto all = owner.card().regions;
  ASSERT_EQ(all.size(), 2u);
  const wire::Card some = owner.card({all[1].index});
  ASSERT_EQ(some.regions.size(), 1u);
  EXPECT_EQ(some.regions.front().index, all[1].index);
  EXPECT_EQ(some.regions.front().name, "b");
}

TEST(InnerPeers, APeerThatIsMetHasNoCardAndNoRegions) {
  Owner owner("owner"), asker("asker");
  const wire::Card card = owner.card();
  const Peer met = meet(asker.agent, card).value();
  EXPECT_FALSE(has_card(met));
  EXPECT_EQ(incarnation_of(met), card.incarnation);
  EXPECT_EQ(born_of(met), card.born);
  const RegionId id = id_of(card.regions.front());
  EXPECT_EQ(find_remote(met, id), nullptr);
}

TEST(InnerPeers, ARegionIsFoundByItsWholeIdUntilACardTellsThatItIsGone) {
  Owner owner("owner"), asker("asker");
  const Peer peer = take_anew(asker.agent, owner.card()).value();
  EXPECT_TRUE(has_card(peer));
  const RegionId id = id_of(owner.card().regions.front());
  RegionId wrong_key = id, wrong_generation = id;
  wrong_key.key.lo ^= 1;
  ++wrong_generation.generation;
  ASSERT_NE(find_remote(peer, id), nullptr);
  EXPECT_EQ(find_remote(peer, wrong_key), nullptr);
  EXPECT_EQ(find_remote(peer, wrong_generation), nullptr);
  const std::vector ids = {id, wrong_key};
  EXPECT_EQ(are_known(peer, ids), (std::vector{true, false}));

  const std::uint64_t gone = regions_gone(peer);
  ASSERT_TRUE(owner.a.close(5s).ok());
  ASSERT_TRUE(take_anew(asker.agent, owner.card()).has_value());
  EXPECT_GT(regions_gone(peer), gone);
  EXPECT_EQ(find_remote(peer, id), nullptr);
}

TEST(InnerPeers, APeerThatIsDownBeginsAnew) {
  Owner owner("owner"), asker("asker");
  const Peer first = take_anew(asker.agent, owner.card()).value();
  ASSERT_TRUE(asker.agent.invalidate(first).ok());
  ASSERT_EQ(first.state(), PeerState::kDown);
  EXPECT_FALSE(down_status(first).ok());
  const Peer second = take_anew(asker.agent, owner.card()).value();
  EXPECT_EQ(second.state(), PeerState::kKnown);
  EXPECT_TRUE(outranks(second, first));
  EXPECT_FALSE(outranks(first, second));
}

TEST(InnerPeers, EachOpenBackendIsAWay) {
  Owner owner("owner"), asker("asker");
  const Peer peer = take_anew(asker.agent, owner.card()).value();
  const std::vector<Way> ways = ways_to(asker.agent, peer);
  ASSERT_EQ(ways.size(), 1u);
  EXPECT_EQ(ways.front().backend, "tcp");
  EXPECT_TRUE(ways.front().why.ok()) << ways.front().why.to_string();
}

}  // namespace
}  // namespace hawser::agent::inner
