#include "backend/verbs/mock/mock_wires.h"

#include "backend/verbs/mock/test_mock_pair.h"

namespace hawser::backend::verbs {
namespace {

using Way = MockWires::Way;

class MockWiresTest : public testing::Test, protected TestMockPair {
 protected:
  Way way(bool is_removed = false) {
    const MockWires::End to{.qp = there, .device = there_device, .is_removed = is_removed};
    return wires_.way_of(request_, {.qp = here, .device = here_device}, &to);
  }
  void set_bytes(std::uint32_t bytes) { request_.list = {{.addr = 0, .length = bytes, .lkey = 0}}; }

  MockWires wires_;
  MockRequest request_;
};

TEST_F(MockWiresTest, ConnectedQueuePairsReachEachOther) {
  EXPECT_EQ(way(), Way::kOpen);
  EXPECT_EQ(wires_.way_of(request_, {.qp = here, .device = here_device}, nullptr), Way::kLost);
  EXPECT_EQ(way(true), Way::kLost);
}

TEST_F(MockWiresTest, PacketsOfAnEarlierConnectionAreLost) {
  there.attr.rq_psn = 12;
  EXPECT_EQ(way(), Way::kLost);
  there.attr.rq_psn = 11;
  there.peer = 3;
  EXPECT_EQ(way(), Way::kLost);
  there.peer = 1;
  there.attr.qp_state = IBV_QPS_INIT;
  EXPECT_EQ(way(), Way::kLost);
}

TEST_F(MockWiresTest, EitherLinkCutsBoth) {
  for (const char* port : {"mock0", "mock1"}) {
    wires_.set_link(port, false);
    EXPECT_EQ(way(), Way::kLost) << port;
    wires_.set_link(port, true);
    EXPECT_EQ(way(), Way::kOpen) << port;
  }
  wires_.set_link("mock0:2", false);
  EXPECT_EQ(way(), Way::kOpen) << "another port";
  EXPECT_EQ(MockWires::port_name("mock0", 2), "mock0:2");
  there_device.gone = true;
  EXPECT_EQ(way(), Way::kLost);
}

TEST_F(MockWiresTest, DeadAddressesLeadNowhere) {
  wires_.dead_gids.insert(here_device.gids_of(1)[1].bytes);
  EXPECT_EQ(way(), Way::kLost) << "ours";
  wires_.dead_gids = {there_device.gids_of(1)[1].bytes};
  EXPECT_EQ(way(), Way::kLost) << "the peer's";
  wires_.dead_gids = {there_device.gids_of(1)[0].bytes};
  EXPECT_EQ(way(), Way::kOpen) << "one that is not used";
}

TEST_F(MockWiresTest, PacketsFitTheWay) {
  wires_.packet_max = 512;
  set_bytes(512);
  EXPECT_EQ(way(), Way::kOpen);
  set_bytes(513);
  EXPECT_EQ(way(), Way::kLost);
  wires_.packet_max = 4096;
  there_device.mtu = IBV_MTU_512;
  EXPECT_EQ(way(), Way::kLost) << "the peer's link";
  here.attr.path_mtu = IBV_MTU_512;
  EXPECT_EQ(way(), Way::kOpen) << "in two packets";
}

TEST_F(MockWiresTest, DatagramsNeedTheKeyAndAnotherHost) {
  request_.to = 2;
  request_.to_gid = 2;
  request_.qkey = there.attr.qkey = 99;
  EXPECT_EQ(way(), Way::kOpen);
  there.attr.qkey = 98;
  EXPECT_EQ(way(), Way::kDropped);
  there.attr.qkey = 99;
  here_device.host = there_device.host = "one";
  EXPECT_EQ(way(), Way::kDropped);
  here_device.host = "other";
  request_.to_gid = 3;
  EXPECT_EQ(way(), Way::kLost);
}

}  // namespace
}  // namespace hawser::backend::verbs
