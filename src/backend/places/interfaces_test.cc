#include "backend/places/interfaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hawser::backend {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

base::SocketAddress address(const std::string& host, std::uint16_t port = 0) {
  return base::numeric_address({.host = host, .port = port}).value();
}

InterfaceAddress one(const std::string& name, const std::string& host, unsigned prefix, bool is_inner = false) {
  return {.interface = name, .address = address(host), .prefix = prefix, .is_inner = is_inner};
}

std::vector<InterfaceAddress> host_with_docker() {
  return {one("eth0", "10.50.0.2", 24),
          one("eth0", "fd00::2", 64),
          one("ib0", "192.168.7.2", 24),
          one("ib1", "192.168.8.2", 24),
          one("docker0", "172.17.0.1", 16, true),
          one("lo", "127.0.0.1", 8),
          one("lo", "::1", 128)};
}

std::vector<std::string> texts(const std::vector<base::SocketAddress>& addresses) {
  std::vector<std::string> all;
  for (const base::SocketAddress& each : addresses) all.push_back(base::to_string(each));
  return all;
}

std::vector<std::string> chosen(std::string_view text) {
  const auto listening = choose_listening(text, host_with_docker());
  return listening ? texts(listening->addresses) : std::vector<std::string>{listening.error().to_string()};
}

TEST(Interfaces, NetworksAreComparedByTheirFirstBits) {
  EXPECT_TRUE(is_in_network(address("10.50.1.2"), address("10.50.0.1"), 23));
  EXPECT_FALSE(is_in_network(address("10.50.1.2"), address("10.50.0.1"), 24));
  EXPECT_TRUE(is_in_network(address("10.50.1.2"), address("0.0.0.0"), 0));
  EXPECT_TRUE(is_in_network(address("fd00::1"), address("fd00::2"), 126));
  EXPECT_FALSE(is_in_network(address("fd00::1"), address("fd00::2"), 127));
  EXPECT_FALSE(is_in_network(address("fd00::1"), address("10.0.0.1"), 0));
}

TEST(Interfaces, ListeningByAddressNetworkAndName) {
  EXPECT_THAT(chosen("10.50.0.2, ::1"), ElementsAre("10.50.0.2:0", "[::1]:0"));
  EXPECT_THAT(chosen("[fd00::2]"), ElementsAre("[fd00::2]:0"));
  EXPECT_THAT(chosen("10.0.0.0/8"), ElementsAre("10.50.0.2:0"));
  EXPECT_THAT(chosen("eth0"), ElementsAre("10.50.0.2:0", "[fd00::2]:0"));
  EXPECT_THAT(chosen("ib*"), ElementsAre("192.168.7.2:0", "192.168.8.2:0"));
  EXPECT_THAT(chosen("eth0,10.0.0.0/8"), ElementsAre("10.50.0.2:0", "[fd00::2]:0")) << "each address once";
  EXPECT_THAT(chosen("0.0.0.0"), ElementsAre("0.0.0.0:0"));
  EXPECT_THAT(chosen("10.9.9.9"), ElementsAre("10.9.9.9:0")) << "binding it tells what is wrong";
}

TEST(Interfaces, ExclusionsAreNamed) {
  EXPECT_THAT(chosen("0.0.0.0,^docker0,^lo"), ElementsAre("10.50.0.2:0", "192.168.7.2:0", "192.168.8.2:0"));
  EXPECT_THAT(chosen("^docker0,^lo"), ElementsAre("10.50.0.2:0", "[fd00::2]:0", "192.168.7.2:0", "192.168.8.2:0"));
  EXPECT_THAT(chosen("ib*,^192.168.8.0/24"), ElementsAre("192.168.7.2:0"));
  EXPECT_THAT(chosen("eth0,^fd00::2"), ElementsAre("10.50.0.2:0"));
  const auto listening = choose_listening("0.0.0.0,^docker0", host_with_docker());
  ASSERT_TRUE(listening);
  EXPECT_THAT(listening->left_out, ElementsAre("172.17.0.1 (docker0: ^docker0)"));
}

TEST(Interfaces, WhatIsNotThereIsNamedWithWhatIs) {
  EXPECT_THAT(chosen("eth7"), ElementsAre(testing::AllOf(HasSubstr("eth7"), HasSubstr("eth0 10.50.0.2/24"))));
  EXPECT_THAT(chosen("11.0.0.0/8"), ElementsAre(HasSubstr("11.0.0.0/8")));
  EXPECT_THAT(chosen("eth0,^eth0"), ElementsAre(HasSubstr("nothing is left")));
  EXPECT_THAT(chosen("10.0.0.0/33"), ElementsAre(HasSubstr("not 0 to 32")));
  EXPECT_THAT(chosen("host.example:1"), ElementsAre(HasSubstr("no address, network or interface")));
  EXPECT_THAT(chosen("a name"), ElementsAre(HasSubstr("no address, network or interface")));
  EXPECT_THAT(chosen(""), ElementsAre(HasSubstr("names no address")));
}

TEST(Interfaces, ThePlaceOfASharedNetworkComesFirst) {
  std::vector<base::SocketAddress> places = {address("172.17.0.1", 7000), address("172.17.0.9", 7000),
                                             address("10.61.0.1", 7000), address("10.50.0.1", 7000)};
  sort_by_nearness(places, host_with_docker());
  EXPECT_THAT(texts(places), ElementsAre("10.50.0.1:7000", "10.61.0.1:7000", "172.17.0.9:7000", "172.17.0.1:7000"));
}

TEST(Interfaces, ThisHostHasLoopbackLast) {
  const std::vector<InterfaceAddress> here = interfaces_here();
  bool seen_loopback = false;
  for (const InterfaceAddress& each : here) {
    seen_loopback = seen_loopback || base::is_loopback(each.address);
    EXPECT_EQ(seen_loopback, base::is_loopback(each.address)) << each.interface;
    EXPECT_GT(each.prefix, 0u) << each.interface;
  }
}

}  // namespace
}  // namespace hawser::backend
