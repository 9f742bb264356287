#include "cli/rdma_view.h"

#include <gtest/gtest.h>

namespace hawser::cli {
namespace {

namespace verbs = backend::verbs;

verbs::Survey one_device() {
  verbs::SurveyedDevice device;
  device.info.name = "rxe0";
  device.info.driver = "rxe";
  device.info.netdevs = {"veth0"};
  verbs::PortInfo port;
  port.state = verbs::PortState::kActive;
  port.link_layer = verbs::LinkLayer::kEthernet;
  port.mbit_per_s = 2500;
  port.active_mtu = 4096;
  port.netdev = "veth0";
  const auto add = [&](std::uint32_t index, std::string_view bytes) {
    port.gids.push_back({index, *verbs::parse_gid(bytes), verbs::GidType::kRoceV2, "veth0",
                         static_cast<std::uint8_t>(index == 1 ? 24 : 0)});
  };
  add(0, "fe80:0000:0000:0000:0000:0000:0000:0001");
  add(1, "0000:0000:0000:0000:0000:ffff:0a4d:0001");
  device.gids.push_back(verbs::score_gids(port.gids, port.netdev));
  device.usable.push_back(verbs::usable(device.info, port));
  device.info.ports.push_back(std::move(port));
  verbs::Survey survey;
  survey.library = "libibverbs.so.1";
  survey.devices.push_back(std::move(device));
  return survey;
}

TEST(RdmaView, AHostWithoutDevicesShowsNothing) {
  EXPECT_EQ(rdma_ports_text({}), "");
  EXPECT_EQ(rdma_gids_text({}), "");
  EXPECT_EQ(rdma_rails_text({}), "");
  EXPECT_TRUE(rdma_json({})["devices"].empty());
}

TEST(RdmaView, APortIsARow) {
  EXPECT_EQ(rdma_ports_text(one_device()),
            "rdma port  driver  at     numa  state   link           speed   mtu  GID in use              usable\n"
            "rxe0:1     rxe     veth0     -  active  Ethernet  2.5 Gbit/s  4096  1: 10.77.0.1 (RoCE v2)  yes\n");
}

TEST(RdmaView, CountersThatAreNotZeroAreShown) {
  verbs::Survey survey = one_device();
  EXPECT_EQ(rdma_counters_text(survey), "");
  survey.devices[0].info.ports[0].counters = {{"rcvd_pkts", 12}, {"rcvd_rnr_err", 0}};
  EXPECT_EQ(rdma_counters_text(survey),
            "rdma port  counter of the kernel  value\n"
            "rxe0:1     rcvd_pkts                 12\n");
  EXPECT_EQ(rdma_json(survey)["devices"][0]["ports"][0]["counters"]["rcvd_rnr_err"], 0);
}

TEST(RdmaView, GidsAreShownBestFirstWithTheirReasons) {
  EXPECT_EQ(
      rdma_gids_text(one_device()),
      "rdma port  gid  address       interface  score  reason\n"
      "rxe0:1       1  10.77.0.1/24  veth0       4350  RoCE v2 +4000, routable +200, IPv4 +100, own interface +50\n"
      "rxe0:1       0  fe80::1       veth0       4050  RoCE v2 +4000, link-local, own interface +50\n");
}

TEST(RdmaView, RailsAreShownByPlace) {
  const verbs::Survey survey = one_device();
  const auto infos = infos_of(survey);
  const std::vector<verbs::PlacePorts> places = {
      {"cpu:0", {{&infos[0], &infos[0].ports[0], {verbs::PathClass::kSys, 2500}, 0}}}};
  EXPECT_EQ(rdma_rails_text(places),
            "memory of  rank  rdma port  path   narrowest\n"
            "cpu:0         0  rxe0:1     SYS   2.5 Gbit/s\n");
  EXPECT_EQ(rails_json(places)[0]["ports"][0]["path"], "SYS");
}

TEST(RdmaView, JsonHasWhatTheTablesHave) {
  verbs::Survey survey = one_device();
  survey.devices[0].open = Status(Code::kDenied, "no");
  const Json made = rdma_json(survey);
  const Json& device = made["devices"][0];
  EXPECT_EQ(device["name"], "rxe0");
  EXPECT_EQ(device["open"], false);
  EXPECT_TRUE(device["pci"].is_null());
  EXPECT_TRUE(device["numa"].is_null());
  EXPECT_EQ(device["ports"][0]["gids"][0]["index"], 1);
  EXPECT_EQ(device["ports"][0]["gids"][0]["score"], 4350);
  EXPECT_EQ(device["ports"][0]["usable"], true);
}

}  // namespace
}  // namespace hawser::cli
