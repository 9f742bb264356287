#include "backend/verbs/path/told_ports.h"

#include <gtest/gtest.h>

namespace hawser::backend::verbs {
namespace {

constexpr GidBytes ip(std::uint8_t subnet, std::uint8_t host) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, subnet, host};
}

Gid gid(std::uint8_t subnet, std::uint8_t host) {
  Gid made;
  made.bytes = ip(subnet, host);
  made.type = GidType::kRoceV2;
  return made;
}

wire::RdmaPort port(const std::string& device, std::vector<Gid> gids, std::uint64_t mbit_per_s = 100) {
  wire::RdmaPort made{.device = device, .transport = 1, .layer = 2, .mbit_per_s = mbit_per_s};
  for (const Gid& each : gids) made.gids.push_back({.bytes = to_wire(each.bytes), .type = 3, .prefix = 24});
  made.gid = made.gids.front().bytes;
  made.gid_type = 3;
  return made;
}

RailPort rail(const std::string& device, const Gid& its) {
  return {.device = device,
          .transport = Transport::kInfiniBand,
          .link_layer = LinkLayer::kEthernet,
          .mbit_per_s = 100,
          .gid = its};
}

TEST(ToldPorts, ThePeersPortsAreTakenOnceAndTheirAddressesAgain) {
  ToldPorts ports;
  EXPECT_FALSE(ports.is_known());
  EXPECT_TRUE(ports.take({.ports = {port("a", {gid(0, 1)})}}));
  EXPECT_TRUE(ports.is_known());
  EXPECT_FALSE(ports.take({.ports = {port("a", {gid(0, 2)})}}));
  EXPECT_EQ(ports.peer_gids(0, false, {}).front().bytes, ip(0, 2));
  EXPECT_FALSE(ports.take({.ports = {port("b", {gid(0, 3)})}})) << "other ports are not taken";
  EXPECT_EQ(ports.peer_gids(0, false, {}).front().bytes, ip(0, 2));
}

TEST(ToldPorts, AreDueAgainOnlyAfterTheyWereTold) {
  ToldPorts ports;
  ports.change();
  EXPECT_FALSE(ports.is_due()) << "what is told first has the new addresses";
  ports.begin({false});
  EXPECT_FALSE(ports.is_due());
  ports.change();
  EXPECT_TRUE(ports.is_due());
  ports.told();
  EXPECT_FALSE(ports.is_due());
}

TEST(ToldPorts, ThePeerMayAskForQueuePairsBetweenPortsThatAreThere) {
  ToldPorts ports;
  ports.begin({false, true});
  EXPECT_FALSE(ports.admits(0, 0)) << "it has told none of its own";
  ports.take({.ports = {port("a", {gid(0, 1)})}});
  EXPECT_TRUE(ports.admits(0, 0));
  EXPECT_FALSE(ports.admits(1, 0));
  EXPECT_FALSE(ports.admits(0, 1)) << "it was told as away";
  EXPECT_FALSE(ports.admits(0, 2));
  EXPECT_EQ(ports.count(), 2u);
}

TEST(ToldPorts, ARailIsAsFastAsItsSlowerPort) {
  ToldPorts ports;
  ports.take({.ports = {port("a", {gid(0, 1)}, 100)}});
  EXPECT_EQ(ports.rail_speed(200, 0), 100u);
  EXPECT_EQ(ports.rail_speed(50, 0), 50u);
  EXPECT_EQ(ports.rail_speed(50, 1), 0u) << "unknown";
}

TEST(ToldPorts, PortsThatAreAwayAreInNoRail) {
  ToldPorts ports;
  ports.take({.ports = {port("a", {gid(0, 1)}), port("b", {gid(0, 2)})}});
  const std::vector<RailPort> ours = {rail("a", gid(0, 3)), rail("b", gid(0, 4))};
  const auto both = ports.rails(ours, {false, false}, Pairing());
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(*both, (std::vector<Rail>{{.local = 0, .remote = 0}, {.local = 1, .remote = 1}}));
  const auto one = ports.rails(ours, {true, false}, Pairing());
  ASSERT_TRUE(one.has_value());
  for (const Rail& each : *one) EXPECT_EQ(each.local, 1u);
  const auto none = ports.rails(ours, {true, true}, Pairing());
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().scope(), Scope::kPath);
}

TEST(ToldPorts, TheEndThatAnswersKnowsTheAddressThatTheOpenerChose) {
  ToldPorts ports;
  EXPECT_TRUE(ports.peer_gids(0, true, {}).empty());
  ports.take({.ports = {port("a", {gid(0, 1), gid(1, 1)})}});
  EXPECT_EQ(ports.peer_gids(0, false, {}).size(), 2u);
  const auto known = ports.peer_gids(0, true, to_wire(ip(1, 1)));
  ASSERT_EQ(known.size(), 1u);
  EXPECT_EQ(known.front().bytes, ip(1, 1));
  const auto other = ports.peer_gids(0, true, to_wire(ip(2, 9)));
  ASSERT_EQ(other.size(), 1u) << "one that it had not told";
  EXPECT_EQ(other.front().bytes, ip(2, 9));
}

TEST(ToldPorts, AttemptsGoThroughThePairsOfAddresses) {
  ToldPorts ports;
  const std::vector<Gid> own = {gid(0, 7), gid(1, 7)};
  EXPECT_EQ(ports.ways(0, own, {}), 1u);
  EXPECT_EQ(ports.ways_of_peer(0, own), 0u);
  ports.take({.ports = {port("a", {gid(0, 1), gid(1, 1), gid(2, 1)})}});
  EXPECT_EQ(ports.ways_of_peer(0, own), 3u);
  EXPECT_EQ(ports.ways(0, own, {}), 6u);
}

}  // namespace
}  // namespace hawser::backend::verbs
