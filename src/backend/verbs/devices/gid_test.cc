#include "backend/verbs/devices/gid.h"

#include <gtest/gtest.h>

#include "backend/verbs/devices/device.h"

namespace hawser::backend::verbs {
namespace {

constexpr const char* kLinkLocal = "fe80:0000:0000:0000:b86b:d3ff:fed1:87ec";
constexpr const char* kIpv4 = "0000:0000:0000:0000:0000:ffff:0a4d:0001";
constexpr const char* kGlobal = "2001:0db8:0000:0001:0000:0000:0000:0007";

Gid gid(std::uint32_t index, const char* bytes, GidType type = GidType::kRoceV2, const char* netdev = "eth0") {
  return {index, parse_gid(bytes).value_or(GidBytes{}), type, netdev, 0};
}

std::uint32_t best(const std::vector<Gid>& gids, const std::vector<Gid>& peer = {}) {
  return score_gids(gids, "eth0", peer).front().gid.index;
}

TEST(VerbsGid, TextIsReadAndWrittenAndClassified) {
  EXPECT_EQ(gid(0, kIpv4).text(), "10.77.0.1");
  EXPECT_EQ(gid(0, kLinkLocal).text(), "fe80::b86b:d3ff:fed1:87ec");
  EXPECT_TRUE(gid(0, kIpv4).ipv4_mapped());
  EXPECT_FALSE(gid(0, kIpv4).link_local());
  EXPECT_TRUE(gid(0, kLinkLocal).link_local());
  EXPECT_FALSE(gid(0, kGlobal).link_local());
  EXPECT_TRUE(gid(0, "0000:0000:0000:0000:0000:ffff:a9fe:0001").link_local()) << "judged by its IPv4 scope";
  EXPECT_TRUE(gid(0, "0000:0000:0000:0000:0000:ffff:7f00:0001").loopback());
  EXPECT_TRUE(gid(0, "0000:0000:0000:0000:0000:0000:0000:0001").loopback());
}

TEST(VerbsGid, WrongTextIsNoGid) {
  for (const char* text :
       {"", "fe80::1", "0000:0000:0000:0000:0000:0000:0000:000g", "0000:0000:0000:0000:0000:0000:0000",
        "0000-0000:0000:0000:0000:0000:0000:0000", "0000:0000:0000:0000:0000:0000:0000:00000"}) {
    EXPECT_FALSE(parse_gid(text)) << text;
  }
}

// rxe has link-local IPv6 at 0 and IPv4 at 1, both RoCE v2.
TEST(VerbsGid, Ipv4BeatsLinkLocalOnSoftRoce) { EXPECT_EQ(best({gid(0, kLinkLocal), gid(1, kIpv4)}), 1u); }

TEST(VerbsGid, OrderIsV2Ipv4ThenV2Ipv6ThenV1) {
  const std::vector<Gid> gids = {gid(0, kIpv4, GidType::kRoceV1), gid(1, kLinkLocal), gid(2, kGlobal), gid(3, kIpv4)};
  const auto table = score_gids(gids, "eth0");
  ASSERT_EQ(table.size(), 4u);
  EXPECT_EQ(table[0].gid.index, 3u);
  EXPECT_EQ(table[1].gid.index, 2u);
  EXPECT_EQ(table[2].gid.index, 1u);
  EXPECT_EQ(table[3].gid.index, 0u);
}

TEST(VerbsGid, RoutableIpv6BeatsLinkLocalIpv4) {
  EXPECT_EQ(best({gid(0, "0000:0000:0000:0000:0000:ffff:a9fe:0001"), gid(1, kGlobal)}), 1u);
}

TEST(VerbsGid, OwnInterfaceDecidesBetweenEquals) {
  EXPECT_EQ(best({gid(0, kIpv4, GidType::kRoceV2, "eth0.7"), gid(1, kIpv4)}), 1u);
  EXPECT_EQ(best({gid(0, kIpv4, GidType::kRoceV2, "eth0.7"), gid(1, kGlobal)}), 0u) << "the family comes before it";
}

TEST(VerbsGid, LowestIndexBreaksTies) { EXPECT_EQ(best({gid(5, kIpv4), gid(3, kIpv4)}), 3u); }

TEST(VerbsGid, SubnetOfThePeerWins) {
  const std::vector<Gid> gids = {gid(0, kIpv4),
                                 gid(1, "0000:0000:0000:0000:0000:ffff:c0a8:0105", GidType::kRoceV2, "eth0.7")};
  EXPECT_EQ(best(gids), 0u);
  EXPECT_EQ(best(gids, {gid(9, "0000:0000:0000:0000:0000:ffff:c0a8:0106")}), 1u);
}

TEST(VerbsGid, FamilyOfThePeerWins) { EXPECT_EQ(best({gid(0, kIpv4), gid(1, kGlobal)}, {gid(0, kGlobal)}), 1u); }

TEST(VerbsGid, VersionOfThePeerWins) {
  EXPECT_EQ(best({gid(0, kIpv4), gid(1, kIpv4, GidType::kRoceV1)}, {gid(0, kIpv4, GidType::kRoceV1)}), 1u);
}

TEST(VerbsGid, SubnetsCompareByTheLongerPrefix) {
  Gid a = gid(0, "0000:0000:0000:0000:0000:ffff:0a00:0001"), b = gid(0, "0000:0000:0000:0000:0000:ffff:0a00:0101");
  EXPECT_FALSE(same_subnet(a, b)) << "unknown counts as /24";
  a.prefix_bits = 16;
  EXPECT_TRUE(same_subnet(a, b));
  b.prefix_bits = 30;
  EXPECT_FALSE(same_subnet(a, b));
  EXPECT_FALSE(same_subnet(gid(0, kLinkLocal), gid(0, kLinkLocal))) << "which link is meant cannot be told";
  EXPECT_FALSE(same_subnet(gid(0, kGlobal), a));
  EXPECT_TRUE(same_subnet(gid(0, kGlobal), gid(0, "2001:0db8:0000:0001:0000:0000:0000:0009")));
}

TEST(VerbsGid, EveryScoreHasItsReason) {
  const std::vector<Gid> gids = {gid(0, kLinkLocal), gid(1, kIpv4)};
  const std::vector<Gid> peer = {gid(0, kIpv4)};
  const auto table = score_gids(gids, "eth0", peer);
  EXPECT_EQ(table[0].reason,
            "RoCE v2 +4000, family of the peer +1000, subnet of the peer +500, routable +200, IPv4 +100, own interface "
            "+50");
  EXPECT_EQ(table[0].score, 5850);
  EXPECT_EQ(table[1].reason, "RoCE v2 +4000, link-local, own interface +50");
  EXPECT_EQ(table[1].score, 4050);
}

PortInfo port_with(std::vector<Gid> gids, LinkLayer link_layer = LinkLayer::kEthernet) {
  PortInfo port;
  port.link_layer = link_layer;
  port.netdev = "eth0";
  port.gids = std::move(gids);
  return port;
}

TEST(VerbsGid, BestGidTakesTheTablesFirst) {
  const auto chosen = best_gid(port_with({gid(0, kLinkLocal), gid(1, kIpv4)}));
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(chosen->index, 1u);
}

// An address handle has 8 bits for it; 257 would mean entry 1.
TEST(VerbsGid, AnIndexThatNoQueuePairCanNameIsRefused) {
  const PortInfo port = port_with({gid(256, kIpv4), gid(257, kIpv4)});
  for (const auto index : {std::optional<std::uint32_t>(256), std::optional<std::uint32_t>(300)}) {
    const auto refused = best_gid(port, index);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), Code::kUnsupported);
    EXPECT_NE(refused.error().to_string().find(std::to_string(*index)), std::string::npos);
  }
  EXPECT_EQ(best_gid(port).error().code(), Code::kNotFound);
  EXPECT_EQ(best_gid(port_with({gid(255, kLinkLocal), gid(256, kIpv4)}))->index, 255u);
}

TEST(VerbsGid, TheUsersIndexOverrides) {
  const PortInfo port = port_with({gid(0, kLinkLocal), gid(1, kIpv4)});
  EXPECT_EQ(best_gid(port, 0)->index, 0u);
  const auto absent = best_gid(port, 3);
  ASSERT_FALSE(absent.has_value());
  EXPECT_EQ(absent.error().code(), Code::kNotFound);
  EXPECT_EQ(absent.error().message(),
            "port 1 has no GID 3; there are: 0 (fe80::b86b:d3ff:fed1:87ec, RoCE v2), 1 (10.77.0.1, RoCE v2)");
}

TEST(VerbsGid, APortWithoutAUsableGidSaysHowToGetOne) {
  for (const PortInfo& port : {port_with({}), port_with({gid(0, "0000:0000:0000:0000:0000:ffff:7f00:0001")})}) {
    const auto none = best_gid(port);
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().code(), Code::kNotFound);
    EXPECT_NE(none.error().advice().find("ip address add A.B.C.D/24 dev eth0"), std::string::npos);
  }
}

TEST(VerbsGid, InfiniBandTakesItsFirst) {
  const auto chosen = best_gid(port_with({gid(0, "fe80:0000:0000:0000:0002:c903:0000:0001", GidType::kInfiniBand, ""),
                                          gid(1, kGlobal, GidType::kInfiniBand, "")},
                                         LinkLayer::kInfiniBand));
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(chosen->index, 0u);
}

TEST(VerbsGid, InfiniBandNeedsAGlobalRouteBetweenSubnetsOnly) {
  const Gid own = gid(0, "fe80:0000:0000:0000:0002:c903:0000:0001", GidType::kInfiniBand, "");
  const GidBytes near = gid(0, "fe80:0000:0000:0000:0002:c903:0000:0002").bytes;
  const GidBytes far = gid(0, "fe80:0000:0000:0001:0002:c903:0000:0002").bytes;
  const PortInfo port = port_with({own}, LinkLayer::kInfiniBand);
  EXPECT_FALSE(needs_global_route(port, own, near, 7));
  EXPECT_TRUE(needs_global_route(port, own, far, 7));
  EXPECT_TRUE(needs_global_route(port, own, near, 0)) << "without a LID the GID is all there is";
  EXPECT_FALSE(needs_global_route(port, own, {}, 7)) << "a peer that told no GID";
  EXPECT_TRUE(needs_global_route(port_with({own}), own, near, 7)) << "Ethernet always does";
}

}  // namespace
}  // namespace hawser::backend::verbs
