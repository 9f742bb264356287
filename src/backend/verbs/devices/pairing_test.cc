// C18 of the conformance list: which ports of two hosts become rails.

#include "backend/verbs/devices/pairing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/rng.h"

namespace hawser::backend::verbs {
namespace {

RailPort roce(const std::string& device, std::uint8_t subnet, std::uint8_t host, std::uint64_t gbit_per_s = 100) {
  RailPort port{device, 1, Transport::kInfiniBand, LinkLayer::kEthernet, gbit_per_s * 1000, {}};
  port.gid.type = GidType::kRoceV2;
  port.gid.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, subnet, host};
  return port;
}

std::string rails_of(const std::vector<RailPort>& local, const std::vector<RailPort>& remote, std::string_view policy) {
  std::vector<std::string> words;
  const Pairing pairing = *parse_pairing(policy);
  for (const Rail& rail : choose_rails(local, remote, pairing)) {
    words.push_back(fmt::format("{}-{}", local[rail.local].device, remote[rail.remote].device));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

TEST(C18, PoliciesAreRead) {
  EXPECT_EQ(parse_pairing("")->policy, Pairing::Policy::kAny);
  EXPECT_EQ(parse_pairing("any")->policy, Pairing::Policy::kAny);
  EXPECT_EQ(parse_pairing("match_name")->policy, Pairing::Policy::kMatchName);
  const auto groups = parse_pairing("groups:a,b|c,d");
  ASSERT_TRUE(groups.has_value());
  EXPECT_EQ(groups->groups, (std::vector<std::vector<std::string>>{{"a", "b"}, {"c", "d"}}));
}

TEST(C18, AWrongPolicyIsAnErrorThatSaysWhatIsWrong) {
  const auto message = [](std::string_view text) {
    const auto pairing = parse_pairing(text);
    EXPECT_FALSE(pairing.has_value());
    return pairing ? "" : std::string(pairing.error().message());
  };
  EXPECT_EQ(message("same"),
            "'same' is no way to pair devices: it is unknown; there are: any, match_name, "
            "groups:mlx5_0,mlx5_1|mlx5_2,mlx5_3");
  EXPECT_NE(message("groups:").find("a name is empty"), std::string::npos);
  EXPECT_NE(message("groups:a,,b").find("a name is empty"), std::string::npos);
  EXPECT_NE(message("groups:a|").find("a name is empty"), std::string::npos);
  EXPECT_NE(message("groups:a,b|c,a").find("'a' stands there twice"), std::string::npos);
}

TEST(C18, SameNamesPairBeforeAnythingElse) {
  EXPECT_EQ(rails_of({roce("b", 0, 1), roce("a", 0, 2)}, {roce("a", 0, 3), roce("b", 0, 4)}, "any"), "b-b a-a");
}

TEST(C18, TheRestPairsBestWithBest) {
  EXPECT_EQ(rails_of({roce("a", 0, 1), roce("b", 0, 2)}, {roce("x", 0, 3), roce("y", 0, 4)}, "any"), "a-x b-y");
}

TEST(C18, OneSubnetComesBeforeBetterPlaces) {
  EXPECT_EQ(rails_of({roce("a", 1, 1), roce("b", 2, 1)}, {roce("x", 2, 2), roce("y", 1, 2)}, "any"), "a-y b-x");
}

TEST(C18, MatchNamePairsOnlyTheSameName) {
  EXPECT_EQ(rails_of({roce("a", 0, 1), roce("b", 0, 2)}, {roce("b", 0, 3), roce("c", 0, 4)}, "match_name"), "b-b");
  EXPECT_EQ(rails_of({roce("a", 0, 1)}, {roce("b", 0, 3)}, "match_name"), "");
}

TEST(C18, GroupsPairWithinAGroupOnly) {
  EXPECT_EQ(rails_of({roce("a", 0, 1), roce("c", 0, 2)}, {roce("b", 0, 3), roce("d", 0, 4)}, "groups:a,d|b,c"),
            "a-d c-b");
  EXPECT_EQ(rails_of({roce("a", 0, 1), roce("e", 0, 2)}, {roce("b", 0, 3), roce("e", 0, 4)}, "groups:a,b|c,d"), "a-b")
      << "a device in no group is not used";
}

TEST(C18, AChoiceBetweenPeersTakesTheFirst) {
  EXPECT_EQ(rails_of({roce("a", 0, 1)}, {roce("x", 0, 2), roce("y", 0, 3)}, "any"), "a-x");
}

TEST(C18, LeftOverPortsJoinWhereSpeedIsLeft) {
  EXPECT_EQ(rails_of({roce("a", 0, 1, 100), roce("b", 0, 2, 100), roce("c", 0, 3, 100)}, {roce("x", 0, 4, 200)}, "any"),
            "a-x b-x");
}

TEST(C18, PairsOverEmptyListsAreEmpty) {
  EXPECT_EQ(rails_of({}, {roce("a", 0, 1)}, "any"), "");
  EXPECT_EQ(rails_of({roce("a", 0, 1)}, {}, "any"), "");
  EXPECT_EQ(rails_of({}, {}, "groups:a"), "");
}

TEST(C18, PortsThatDoNotUnderstandEachOtherAreNoRail) {
  RailPort other = roce("a", 0, 2);
  other.gid.type = GidType::kRoceV1;
  EXPECT_EQ(rails_of({roce("a", 0, 1)}, {other}, "any"), "");
  other = roce("a", 0, 2);
  other.link_layer = LinkLayer::kInfiniBand;
  EXPECT_EQ(rails_of({roce("a", 0, 1)}, {other}, "any"), "");
  other = roce("a", 0, 2);
  other.gid.bytes = {0x20, 0x01};
  EXPECT_EQ(rails_of({roce("a", 0, 1)}, {other}, "any"), "") << "IPv4 and IPv6";
  other = roce("a", 0, 2);
  other.transport = Transport::kEfa;
  EXPECT_EQ(rails_of({roce("a", 0, 1)}, {other}, "any"), "");
}

TEST(C18, NoRailSaysWhy) {
  RailPort other = roce("b", 0, 2);
  const std::vector<RailPort> here = {roce("a", 0, 1)};
  const Status by_policy = why_no_rails(here, {{other}}, *parse_pairing("match_name"));
  EXPECT_EQ(by_policy.message(),
            "no RDMA rail to the peer: the pairing policy joins no two of them; here: a:1 (Ethernet, RoCE v2 "
            "10.0.0.1); there: b:1 (Ethernet, RoCE v2 10.0.0.2)");
  other.gid.type = GidType::kRoceV1;
  const Status by_kind = why_no_rails(here, {{other}}, Pairing{});
  EXPECT_NE(by_kind.message().find("no two of them are of one kind"), std::string::npos);
}

// Whichever side asks, the rails are the same ones: else each would wait for queue pairs of which the other knows
// nothing.
TEST(C18, BothSidesFindTheSameRails) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    base::Rng rng(seed);
    const auto make = [&](std::uint8_t side) {
      std::vector<RailPort> ports;
      const std::uint64_t count = 1 + rng.below(4);
      for (std::uint64_t i = 0; i < count; ++i) {
        ports.push_back(roce(std::string(1, static_cast<char>('a' + i)), static_cast<std::uint8_t>(rng.below(3)),
                             static_cast<std::uint8_t>(side + i), 100 * (1 + rng.below(2))));
      }
      for (std::size_t i = ports.size(); i > 1; --i) std::swap(ports[i - 1], ports[rng.below(i)]);
      return ports;
    };
    const auto here = make(10), there = make(20);
    for (const char* policy : {"any", "match_name", "groups:a,b|c,d"}) {
      const Pairing pairing = *parse_pairing(policy);
      std::set<std::pair<std::uint32_t, std::uint32_t>> forth, back;
      for (const Rail& rail : choose_rails(here, there, pairing)) forth.insert({rail.local, rail.remote});
      for (const Rail& rail : choose_rails(there, here, pairing)) back.insert({rail.remote, rail.local});
      EXPECT_EQ(forth, back) << "seed " << seed << ", " << policy;
    }
  }
}

TEST(C18, ARailPortCarriesWhatThePeerNeeds) {
  DeviceInfo device;
  device.name = "mlx5_0";
  device.transport = Transport::kInfiniBand;
  PortInfo port;
  port.number = 2;
  port.link_layer = LinkLayer::kEthernet;
  const Gid gid = roce("", 1, 2).gid;
  const RailPort told = rail_port({&device, &port, {PathClass::kPix, 50000}, 0}, gid);
  EXPECT_EQ(told.device, "mlx5_0");
  EXPECT_EQ(told.port, 2);
  EXPECT_EQ(told.mbit_per_s, 50000u);
  EXPECT_EQ(told.gid.bytes, gid.bytes);
}

}  // namespace
}  // namespace hawser::backend::verbs
