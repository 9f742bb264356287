// What a device tells of itself: which of its ports an event concerns, addresses that change, failures of the device
// and of its queues; and that ports of one device share what is made on it.

#include "backend/verbs/mock/mock_objects.h"
#include "backend/verbs/port_test_pair.h"

namespace hawser::backend::verbs {
namespace {

class Events : public VerbsPair {
 protected:
  /// A device with two ports at `a`, two with one port each at `b`.
  void start_with_two_ports() {
    fabric.device("mock0").more.emplace_back();
    start({"mock0", "mock0:2"}, {"mock1", "mock2"});
  }
  std::uint64_t reconnects(std::size_t pair) { return to_b->counters().queue_pairs.at(pair).flow.reconnects; }
  void move_some(std::uint64_t cookie) {
    const Piece piece[] = {{a->memory.data(), 0, 4096}};
    ASSERT_EQ(submit(Operation::kWrite, piece, cookie).taken, 1u) << to_b->describe();
    ASSERT_TRUE(run_slow([&] {
      fabric.expire();
      return is_done(cookie);
    })) << to_b->describe();
    EXPECT_TRUE(outcome(cookie).ok()) << outcome(cookie).to_string();
  }
  void start_on_infiniband() {
    for (const char* name : {"mock0", "mock1"}) fabric.device(name).ethernet = false;
    fabric.device("mock0").lid = 7;
    fabric.device("mock1").lid = 8;
    start();
    connect();
  }
  static Gid gid(std::uint32_t index, std::uint8_t subnet, std::uint8_t last, GidType type = GidType::kRoceV2) {
    Gid made;
    made.index = index;
    made.type = type;
    made.bytes[10] = made.bytes[11] = 0xff;
    made.bytes[12] = 10;
    made.bytes[14] = subnet;
    made.bytes[15] = last;
    return made;
  }
  /// No transfers: nothing but the event shows what happened.
  void pass() {
    run_slow([] { return false; }, std::chrono::milliseconds(1), 300);
  }
};

TEST_F(Events, PortsOfOneDeviceShareItAndWhatIsRegistered) {
  start_with_two_ports();
  EXPECT_EQ(fabric.counts.contexts, 3);
  EXPECT_EQ(fabric.counts.pds, 3);
  const int before = fabric.counts.mrs;
  const auto added = a->add_region();
  EXPECT_EQ(fabric.counts.mrs, before + 1) << "once for the two ports";
  std::string holder;
  EXPECT_TRUE(a->port->region_quiet(added->index, added->generation, &holder)) << holder;
  EXPECT_EQ(fabric.counts.mrs, before);
  connect();
  ASSERT_EQ(to_b->counters().queue_pairs.size(), 2u);
  EXPECT_EQ(to_b->counters().queue_pairs.at(1).port, 2);
  std::set<ibv_mr*> of_messages;
  for (const auto& [key, mr] : fabric.memory.registered()) {
    const bool messages = mr->addr != a->memory.data() && mr->addr != b->memory.data();
    if (messages && static_cast<MockContext*>(mr->context)->name == "mock0") of_messages.insert(mr);
  }
  EXPECT_EQ(of_messages.size(), 1u) << "of one path";
  std::array<Piece, 8> pieces;
  for (std::uint64_t i = 0; i < pieces.size(); ++i) {
    pieces[i] = {a->memory.data() + i * 4096, i * 4096, 4096};
    ASSERT_EQ(submit(Operation::kWrite, {&pieces[i], 1}, i).taken, 1u);
  }
  ASSERT_TRUE(run([&] { return a->done.size() == pieces.size(); }));
  for (const QueuePairCounters& pair : to_b->counters().queue_pairs) EXPECT_GT(pair.flow.bytes_out, 0u) << pair.port;
  EXPECT_TRUE(std::equal(a->memory.begin(), a->memory.begin() + 8 * 4096, b->memory.begin()));
}

TEST_F(Events, APortThatGoesDownLeavesTheOthersOfItsDeviceAlone) {
  start_with_two_ports();
  connect();
  fabric.raise("mock0", IBV_EVENT_PORT_ERR, 2);
  ASSERT_TRUE(run_slow([&] { return reconnects(1) > 0; })) << to_b->describe();
  EXPECT_EQ(reconnects(0), 0u);
  EXPECT_EQ(a->port->devices().at(0).faults, 0u);
  EXPECT_EQ(a->port->devices().at(1).faults, 1u);
  fabric.raise("mock0", IBV_EVENT_PORT_ERR, 1);
  ASSERT_TRUE(run_slow([&] { return reconnects(0) > 0; })) << to_b->describe();
  EXPECT_EQ(a->port->devices().at(0).faults, 1u);
  EXPECT_EQ(a->port->devices().at(1).faults, 1u);
}

TEST_F(Events, AFailureOfTheDeviceConcernsAllOfItsPorts) {
  start_with_two_ports();
  connect();
  fabric.raise("mock0", IBV_EVENT_DEVICE_FATAL);
  ASSERT_TRUE(run_slow([&] { return reconnects(0) > 0 && reconnects(1) > 0; })) << to_b->describe();
  EXPECT_EQ(a->port->devices().at(0).faults, 1u);
  EXPECT_EQ(a->port->devices().at(1).faults, 1u);
  move_some(1);
}

TEST_F(Events, ADeviceThatIsPulledOutLeavesTheWorkToTheOther) {
  start({"mock0", "mock2"}, {"mock1", "mock3"});
  connect();
  fabric.set_gone("mock0", true);
  ASSERT_TRUE(run_slow([&] { return to_b->counters().queue_pairs.at(0).state == "backoff"; })) << to_b->describe();
  move_some(1);
  for (int i = 0; i < 10; ++i) pass();
  move_some(2);
  EXPECT_TRUE(a->down.empty() && b->down.empty());
  fabric.set_gone("mock0", false);  // A reset, after which its objects work again.
  EXPECT_TRUE(run_slow([&] { return reconnects(0) > 0; })) << "tried for as long as the path lives, with pauses";
}

// Nobody but the peer can say that nothing of it lands any more, and it is asked with a new queue pair.
TEST_F(Events, WhatIsOnADeviceThatIsPulledOutDoesNotWaitForEver) {
  start({"mock0", "mock2"}, {"mock1", "mock3"});
  connect();
  fabric.hold = true;
  std::array<Piece, 8> pieces;
  for (std::uint64_t i = 0; i < pieces.size(); ++i) {
    pieces[i] = {a->memory.data() + i * 4096, i * 4096, 4096};
    ASSERT_EQ(submit(Operation::kWrite, {&pieces[i], 1}, i).taken, 1u);
  }
  fabric.set_gone("mock0", true);
  fabric.hold = false;
  const Instant begin = now;
  ASSERT_TRUE(run_slow([&] {
    fabric.deliver();
    fabric.expire();
    return a->done.size() == pieces.size();
  })) << to_b->describe();
  EXPECT_LT(now - begin, options.patience + std::chrono::seconds(1));
  const auto lost = std::ranges::count_if(a->done, [](const auto& each) { return !each.second.ok(); });
  EXPECT_EQ(lost, 4) << "the agent sends them again by another path";
  ASSERT_FALSE(a->down.empty());
  EXPECT_NE(a->down.at(0).to_string().find("patience"), std::string::npos) << a->down.at(0).to_string();
}

TEST_F(Events, ADeviceThatIsPulledOutAloneEndsThePathWithTheCause) {
  start();
  connect();
  const Piece piece[] = {{a->memory.data(), 0, 4096}};
  fabric.hold = true;
  ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u);
  fabric.set_gone("mock0", true);
  const Instant begin = now;
  ASSERT_TRUE(run_slow([&] { return !a->down.empty() && is_done(1); })) << to_b->describe();
  EXPECT_LT(now - begin, options.patience + std::chrono::seconds(1));
  EXPECT_NE(a->down.at(0).to_string().find("mock0"), std::string::npos) << a->down.at(0).to_string();
  EXPECT_FALSE(outcome(1).ok());
}

TEST_F(Events, ACompletionQueueThatFailsIsReplaced) {
  start({"mock0", "mock2"}, {"mock1", "mock3"});
  connect();
  fabric.hold = true;
  const Piece piece[] = {{a->memory.data(), 0, 4096}};
  ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u);
  for (MockCq* cq : fabric.cqs_) {
    if (static_cast<MockContext*>(cq->context)->name == "mock0") fabric.fail_cq(*cq);
  }
  fabric.hold = false;
  ASSERT_TRUE(run_slow([&] { return reconnects(0) > 0; })) << to_b->describe();
  EXPECT_EQ(reconnects(1), 0u) << "a queue of another device is none of its business";
  ASSERT_TRUE(run_slow([&] {
    fabric.deliver();
    return is_done(1);
  })) << to_b->describe();
  EXPECT_TRUE(outcome(1).ok()) << outcome(1).to_string();
  EXPECT_EQ(a->port->devices().at(0).faults, 1u);
  EXPECT_EQ(a->port->devices().at(1).faults, 0u);
  move_some(2);
}

TEST_F(Events, ALidThatChangesIsToldToThePeer) {
  start_on_infiniband();
  move_some(1);
  fabric.device("mock0").lid = 77;
  fabric.raise("mock0", IBV_EVENT_LID_CHANGE);
  ASSERT_TRUE(run_slow([&] { return reconnects(0) > 0; })) << to_b->describe();
  move_some(2);
  fabric.device("mock1").lid = 88;  // At the end that did not open the path, too.
  fabric.raise("mock1", IBV_EVENT_LID_CHANGE);
  ASSERT_TRUE(run_slow([&] { return reconnects(0) > 1; })) << to_b->describe();
  move_some(3);
  std::set<std::uint16_t> lids;
  for (const std::uint32_t number : fabric.qp_numbers()) lids.insert(fabric.attributes(number).ah_attr.dlid);
  EXPECT_EQ(lids, (std::set<std::uint16_t>{77, 88}));
}

TEST_F(Events, AGidThatIsReplacedIsUsedNoMore) {
  for (const bool at_opener : {true, false}) {
    SCOPED_TRACE(at_opener);
    const std::string name = at_opener ? "mock0" : "mock1";
    start();
    connect();
    move_some(1);
    fabric.device(name).gids = {gid(3, 0, 77)};  // Another address, and at another index.
    fabric.raise(name, IBV_EVENT_GID_CHANGE);
    ASSERT_TRUE(run_slow([&] { return reconnects(0) > 0; })) << to_b->describe();
    move_some(2);
    EXPECT_EQ((at_opener ? to_b : b->up)->counters().queue_pairs.at(0).gid, "10.0.0.77");
    EXPECT_EQ((at_opener ? b->up : to_b)->counters().queue_pairs.at(0).peer_gid, "10.0.0.77");
    EXPECT_EQ((at_opener ? a : b)->port->devices().at(0).faults, 1u);
    a.reset();
    b.reset();
    fabric.device(name).gids.clear();
  }
}

TEST_F(Events, AGidThatIsNotOursMayChange) {
  start();
  connect();
  fabric.device("mock0").gids = {gid(1, 0, 1), gid(2, 5, 9)};
  fabric.raise("mock0", IBV_EVENT_GID_CHANGE);
  pass();
  EXPECT_EQ(reconnects(0), 0u);
  fabric.raise("mock0", IBV_EVENT_GID_CHANGE, 2);  // Of a port that nobody uses.
  pass();
  EXPECT_EQ(a->port->devices().at(0).faults, 0u);
  move_some(1);
}

TEST_F(Events, APortThatLosesAllItsGidsIsTriedAgainOnceItHasOne) {
  options.patience = std::chrono::hours(1);
  start();
  connect();
  const std::vector<Gid> before = fabric.device("mock0").gids_of(1);
  Gid loopback = gid(1, 0, 1);
  loopback.bytes[12] = 127;
  fabric.device("mock0").gids = {loopback};
  fabric.raise("mock0", IBV_EVENT_GID_CHANGE);
  pass();
  EXPECT_EQ(reconnects(0), 0u) << "there is no other";
  fabric.device("mock0").gids = before;
  fabric.raise("mock0", IBV_EVENT_GID_CHANGE);
  pass();
  move_some(1);
}

TEST_F(Events, EachPairOfPortsUsesTheAddressesOfOneSubnet) {
  // The best of both alone would be in two subnets, and no router joins them.
  fabric.device("mock0").gids = {gid(0, 5, 1), gid(1, 6, 1), gid(2, 0, 1)};
  fabric.device("mock1").gids = {gid(0, 7, 2), gid(1, 8, 2), gid(4, 6, 2)};
  fabric.device("mock2").gids = {gid(0, 9, 3), gid(3, 0, 3)};
  start({"mock0"}, {"mock1"});
  connect();
  move_some(1);
  EXPECT_EQ(to_b->counters().queue_pairs.at(0).gid, "10.0.6.1");
  EXPECT_EQ(to_b->counters().queue_pairs.at(0).peer_gid, "10.0.6.2");
  EXPECT_EQ(b->up->counters().queue_pairs.at(0).gid, "10.0.6.2");
  a.reset();
  b.reset();
  start({"mock0"}, {"mock2"});
  connect();
  EXPECT_EQ(to_b->counters().queue_pairs.at(0).gid, "10.0.0.1") << "to another peer by another one";
  EXPECT_EQ(to_b->counters().queue_pairs.at(0).peer_gid, "10.0.0.3");
}

TEST_F(Events, OneVersionThatBothHaveIsEnough) {
  fabric.device("mock0").gids = {gid(0, 0, 1, GidType::kRoceV1), gid(1, 0, 1)};
  fabric.device("mock1").gids = {gid(0, 0, 2, GidType::kRoceV1)};
  for (const bool at_opener : {true, false}) {
    const std::string here = at_opener ? "mock0" : "mock1", there = at_opener ? "mock1" : "mock0";
    start({here}, {there});
    connect();
    move_some(1);
    for (const std::uint32_t number : fabric.qp_numbers()) {
      EXPECT_EQ(fabric.attributes(number).ah_attr.grh.sgid_index, 0);
    }
    a.reset();
    b.reset();
  }
}

TEST_F(Events, APeerHearsOfNewAddresses) {
  start();
  connect();
  // Both move to another subnet, and each has an address that the other must not be met with.
  fabric.device("mock0").gids = {gid(0, 5, 1), gid(1, 6, 1)};
  fabric.device("mock1").gids = {gid(0, 7, 2), gid(1, 6, 2)};
  fabric.raise("mock1", IBV_EVENT_GID_CHANGE);
  pass();
  fabric.raise("mock0", IBV_EVENT_GID_CHANGE);
  ASSERT_TRUE(run_slow([&] {
    const QueuePairCounters pair = to_b->counters().queue_pairs.at(0);
    return pair.gid == "10.0.6.1" && pair.state == "ready";
  })) << to_b->describe();
  move_some(1);
  EXPECT_EQ(to_b->counters().queue_pairs.at(0).peer_gid, "10.0.6.2");
}

}  // namespace
}  // namespace hawser::backend::verbs
