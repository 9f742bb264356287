// Which lanes an event of a device concerns, without a port. How paths take it is in port_events_test.cc.

#include "backend/verbs/devices/lane_events.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "backend/verbs/mock/mock_backend.h"
#include "backend/verbs/mock/mock_verbs.h"
#include "base/fd.h"

namespace hawser::backend::verbs {
namespace {

/// Three lanes: two ports of mock0, and mock1.
class LaneEventsTest : public ::testing::Test, public LaneUser {
 protected:
  LaneEventsTest() {
    fabric.device("mock0").more.emplace_back();
    const auto verbs = std::make_shared<MockVerbs>(fabric);
    std::vector<std::shared_ptr<Nic>> nics;
    for (const auto& [name, place] : {std::pair{"mock0", 0}, std::pair{"mock0", 1}, std::pair{"mock1", 0}}) {
      const DeviceInfo info = mock_device_info(fabric.device(name));
      auto nic = open_nic(verbs, {.device = &info, .port = &info.ports[static_cast<std::size_t>(place)], .path = {}},
                          VerbsOptions(), {}, device_among(nics, name));
      EXPECT_TRUE(nic.has_value()) << (nic ? "" : nic.error().to_string());
      nics.push_back(*nic);
      lanes.push_back(std::make_unique<NicLane>(*nic, *CqPool::open((*nic)->domain, 8)));
      EXPECT_TRUE(base::set_nonblocking((*nic)->domain->context()->async_fd).ok());
    }
    lanes[0]->device = lanes[1]->device = 0;
    lanes[2]->device = 2;
  }
  void TearDown() override {
    lanes.clear();
    EXPECT_EQ(fabric.counts, MockCounts{}) << "something leaked";
  }

  void on_lane_fault(std::uint32_t lane, const Status& why, Instant) override {
    faults.emplace_back(lane, std::string(why.message()));
  }
  bool on_address_change(std::uint32_t lane, const Status&, Instant) override {
    changed.push_back(lane);
    return was_used;
  }
  void on_deaf(std::uint32_t device, Instant) override { deaf.push_back(device); }
  void on_heard(std::uint32_t device) override { heard.push_back(device); }

  std::vector<std::uint32_t> faulty_lanes() const {
    std::vector<std::uint32_t> all;
    for (const auto& [lane, why] : faults) all.push_back(lane);
    return all;
  }

  MockFabric fabric{{"mock0", "mock1"}};
  LaneEvents::Lanes lanes;
  base::Logger log;
  LaneEvents events{lanes, log, *this};
  Instant now = Instant::min() + std::chrono::seconds(1000);
  std::vector<std::pair<std::uint32_t, std::string>> faults;
  std::vector<std::uint32_t> changed, deaf, heard;
  bool was_used = false;
};

using Numbers = std::vector<std::uint32_t>;

TEST_F(LaneEventsTest, APortThatGoesDownConcernsItsLaneAlone) {
  fabric.raise("mock0", IBV_EVENT_PORT_ERR, 2);
  EXPECT_EQ(events.poll(now), 1u);
  ASSERT_EQ(faulty_lanes(), Numbers{1});
  EXPECT_NE(faults.front().second.find("the port went down"), std::string::npos) << faults.front().second;
  EXPECT_EQ(events.next_poll(), now + LaneEvents::kPollEvery);
  EXPECT_EQ(events.poll(now), 0u);
}

TEST_F(LaneEventsTest, ADeviceThatFailsConcernsAllItsLanes) {
  fabric.raise("mock0", IBV_EVENT_DEVICE_FATAL);
  events.poll(now);
  EXPECT_EQ(faulty_lanes(), (Numbers{0, 1}));
}

TEST_F(LaneEventsTest, AnAddressIsToldOnlyIfItChanged) {
  fabric.raise("mock1", IBV_EVENT_GID_CHANGE);
  events.poll(now);
  EXPECT_TRUE(changed.empty()) << "it is as it was";
  NicAddress other = lanes[2]->nic->address();
  other.gids.front().bytes[15] ^= 0xff;
  lanes[2]->nic->set_address(other);
  fabric.raise("mock1", IBV_EVENT_GID_CHANGE);
  events.poll(now);
  EXPECT_EQ(changed, Numbers{2});
  EXPECT_EQ(lanes[2]->faults, 0u) << "nobody was at the old one";
  was_used = true;
  lanes[2]->nic->set_address(other);
  fabric.raise("mock1", IBV_EVENT_GID_CHANGE);
  events.poll(now);
  EXPECT_EQ(lanes[2]->faults, 1u);
}

TEST_F(LaneEventsTest, ADeviceThatCannotBeHeardIsToldOnceAndItsLanesAreAtFault) {
  events.poll(now);
  EXPECT_EQ(heard, (Numbers{0, 2})) << "each device, not each port";
  fabric.remove("mock0");
  events.poll(now);
  events.poll(now);
  EXPECT_EQ(deaf, Numbers{0});
  EXPECT_EQ(faulty_lanes(), (Numbers{0, 1, 0, 1})) << "the kernel's last word, and its silence";
  EXPECT_NE(faults.back().second.find("its events cannot be read"), std::string::npos) << faults.back().second;
  EXPECT_TRUE(lanes[0]->is_deaf);
  EXPECT_FALSE(lanes[2]->is_deaf);
  EXPECT_TRUE(lanes[0]->is_away());
}

}  // namespace
}  // namespace hawser::backend::verbs
