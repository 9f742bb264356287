// Links that change, or that carry only some of what a port offers: an MTU that shrinks, addresses that lead nowhere,
// packets of full size that get lost. Each test is named after its fault.

#include "backend/verbs/port_test_pair.h"

namespace hawser::backend::verbs {
namespace {

class LinkTrials : public VerbsPair {
 protected:
  static Gid gid(std::uint32_t index, std::uint8_t subnet, std::uint8_t last) {
    Gid made;
    made.index = index;
    made.type = GidType::kRoceV2;
    made.bytes[10] = made.bytes[11] = 0xff;
    made.bytes[12] = 10;
    made.bytes[14] = subnet;
    made.bytes[15] = last;
    return made;
  }
  /// Two addresses of one subnet at each end: nothing tells which of them carries.
  void two_addresses() {
    fabric.device("mock0").gids = {gid(0, 0, 1), gid(1, 0, 11)};
    fabric.device("mock1").gids = {gid(0, 0, 2), gid(1, 0, 22)};
  }
  template <typename Done>
  bool run_with_losses(Done&& finished, int turns = 20000) {
    return run_slow(
        [&] {
          fabric.expire();
          return finished();
        },
        std::chrono::milliseconds(1), turns);
  }
  void move(std::uint64_t cookie, std::uint64_t bytes = 64 * 1024) {
    const Piece piece[] = {{a->memory.data(), 0, bytes}};
    ASSERT_TRUE(run_with_losses([&] { return submit(Operation::kWrite, piece, cookie).taken == 1; }));
    ASSERT_TRUE(run_with_losses([&] { return is_done(cookie); })) << to_b->describe();
    EXPECT_TRUE(outcome(cookie).ok()) << outcome(cookie).to_string();
    EXPECT_TRUE(
        std::equal(a->memory.begin(), a->memory.begin() + static_cast<std::ptrdiff_t>(bytes), b->memory.begin()));
  }
  QueuePairCounters pair(Path* path) { return path->counters().queue_pairs.at(0); }
};

TEST_F(LinkTrials, APortWhoseMtuShrankIsUsedWithSmallerPackets) {
  for (const char* name : {"mock0", "mock1"}) {
    SCOPED_TRACE(name);
    start();
    connect();
    move(1);
    EXPECT_EQ(pair(to_b).mtu_bytes, 4096u);
    fabric.device(name).mtu = IBV_MTU_1024;  // No event tells of it.
    move(2);
    EXPECT_EQ(pair(to_b).mtu_bytes, 1024u);
    EXPECT_EQ(pair(b->up).mtu_bytes, 1024u);
    EXPECT_TRUE(a->down.empty() && b->down.empty());
    fabric.device(name).mtu = IBV_MTU_4096;
    a.reset();
    b.reset();
  }
}

// As Soft-RoCE: no packet leaves, no event tells, and what is posted never ends.
TEST_F(LinkTrials, AnMtuThatShrinksUnderWhatIsPostedIsNoticed) {
  start();
  connect();
  move(1);
  fabric.device("mock0").mtu = IBV_MTU_1024;
  const Piece piece[] = {{a->memory.data(), 0, 64 * 1024}};
  ASSERT_EQ(submit(Operation::kWrite, piece, 2).taken, 1u);
  ASSERT_TRUE(run_slow([&] { return is_done(2); }, std::chrono::milliseconds(1), 3000)) << to_b->describe();
  EXPECT_TRUE(outcome(2).ok()) << outcome(2).to_string();
  EXPECT_EQ(pair(to_b).mtu_bytes, 1024u);
}

TEST_F(LinkTrials, APathThatIsOpenedLaterTakesTheMtuOfThen) {
  start();
  fabric.device("mock0").mtu = IBV_MTU_512;
  connect();
  move(1);
  EXPECT_EQ(pair(to_b).mtu_bytes, 512u);
}

TEST_F(LinkTrials, AnMtuThatShrankIsSeenAtAnEventOfThePort) {
  start();
  connect();
  move(1);
  fabric.device("mock0").mtu = IBV_MTU_1024;
  fabric.raise("mock0", IBV_EVENT_PORT_ACTIVE);
  ASSERT_TRUE(run_slow([&] { return pair(to_b).mtu_bytes == 1024 && pair(to_b).state == "ready"; }))
      << "nothing had to be lost for it: " << to_b->describe();
  move(2);
}

// A switch between the two whose MTU is smaller: the proof has no bytes and goes through.
TEST_F(LinkTrials, AWayThatDropsLargePacketsIsUsedWithSmallerOnes) {
  start();
  connect();
  fabric.wires.packet_max = 1024;
  move(1);
  EXPECT_EQ(pair(to_b).mtu_bytes, 1024u);
  move(2);
  EXPECT_TRUE(a->down.empty() && b->down.empty());
  const std::uint32_t epoch = pair(to_b).epoch;
  move(3);
  EXPECT_EQ(pair(to_b).epoch, epoch) << "it stays at what carries";
}

TEST_F(LinkTrials, ALinkThatWasDownForAMomentKeepsItsPackets) {
  start();
  connect();
  move(1);
  fabric.set_link("mock1", false);
  const Piece piece[] = {{a->memory.data(), 0, 64 * 1024}};
  ASSERT_EQ(submit(Operation::kWrite, piece, 2).taken, 1u);
  run_slow([&] { return fabric.expire() > 0; });
  fabric.set_link("mock1", true);
  ASSERT_TRUE(run_with_losses([&] { return is_done(2); }));
  EXPECT_EQ(pair(to_b).mtu_bytes, 4096u) << "packets of that size had come through";
}

TEST_F(LinkTrials, WhereNoSizeOfPacketsCarriesTheErrorSaysSo) {
  start();
  connect();
  fabric.wires.packet_max = 64;
  const Piece piece[] = {{a->memory.data(), 0, 64 * 1024}};
  ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u);
  ASSERT_TRUE(run_with_losses([&] { return !a->down.empty(); })) << to_b->describe();
  const std::string text = outcome(1).to_string();
  EXPECT_NE(text.find("get no answer while small ones do"), std::string::npos) << text;
  EXPECT_NE(text.find("no answer"), std::string::npos) << text;
  a->port->release_path(to_b);
}

TEST_F(LinkTrials, WhenTheBestAddressDoesNotCarryTheNextOneIsTried) {
  for (const bool here : {true, false}) {
    for (const bool there : {true, false}) {
      SCOPED_TRACE(std::to_string(here) + std::to_string(there));
      two_addresses();
      fabric.wires.dead_gids.clear();
      if (here) fabric.wires.dead_gids.insert(gid(0, 0, 1).bytes);
      if (there) fabric.wires.dead_gids.insert(gid(0, 0, 2).bytes);
      start();
      to_b = open();
      ASSERT_TRUE(run_with_losses([&] { return (a->up != nullptr && b->up != nullptr) || !a->down.empty(); }));
      ASSERT_TRUE(a->down.empty()) << a->down[0].to_string();
      EXPECT_EQ(pair(to_b).gid, here ? "10.0.0.11" : pair(to_b).gid);
      EXPECT_EQ(pair(to_b).peer_gid, there ? "10.0.0.22" : pair(to_b).peer_gid);
      mine = a->add_region();
      region = b->add_region();
      binding = bind(*region, b->extra);
      move(1);
      // What carried is taken again.
      const std::string gid_before = pair(to_b).gid;
      fabric.raise("mock0", IBV_EVENT_PORT_ERR);
      ASSERT_TRUE(run_with_losses([&] { return pair(to_b).flow.reconnects > 0; })) << to_b->describe();
      EXPECT_EQ(pair(to_b).gid, gid_before);
      move(2);
      a.reset();
      b.reset();
    }
  }
}

TEST_F(LinkTrials, WhenNoAddressCarriesTheErrorNamesThoseThatWereTried) {
  two_addresses();
  for (const std::uint8_t last : {1, 11}) fabric.wires.dead_gids.insert(gid(0, 0, last).bytes);
  start();
  to_b = open();
  ASSERT_TRUE(run_with_losses([&] { return !a->down.empty(); }, 30000));
  const std::string text = a->down[0].to_string();
  for (const char* gid : {"10.0.0.1 to", "10.0.0.11 to", "no answer"}) {
    EXPECT_NE(text.find(gid), std::string::npos) << text;
  }
  EXPECT_EQ(a->down[0].scope(), Scope::kPath) << "another backend may lead there";
  a->port->release_path(to_b);
}

TEST_F(LinkTrials, AnAddressThatStopsCarryingIsLeftForTheNext) {
  two_addresses();
  start();
  connect();
  move(1);
  const std::string before = pair(to_b).gid;
  fabric.wires.dead_gids.insert(before == "10.0.0.1" ? gid(0, 0, 1).bytes : gid(1, 0, 11).bytes);
  move(2);
  EXPECT_NE(pair(to_b).gid, before);
}

TEST_F(LinkTrials, WhatIsOverdueSaysWhatItsQueuePairDoes) {
  options.patience = std::chrono::hours(1);
  start();
  connect();
  EXPECT_TRUE(to_b->condition(now).ok()) << to_b->condition(now).to_string();
  fabric.set_link("mock1", false);
  const Piece piece[] = {{a->memory.data(), 0, 4096}};
  ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u);
  const std::string posted = to_b->condition(now).to_string();
  EXPECT_NE(posted.find("ready, 1 in flight"), std::string::npos) << posted;
  ASSERT_TRUE(run_with_losses([&] { return pair(to_b).state != "ready"; }));
  run_slow([] { return false; }, std::chrono::milliseconds(1), 50);
  const std::string lost = to_b->condition(now).to_string();
  EXPECT_NE(lost.find("mock0"), std::string::npos) << lost;
  EXPECT_NE(lost.find("no answer"), std::string::npos) << lost;
  EXPECT_NE(lost.find("1 waits to be posted again"), std::string::npos) << lost;
  fabric.set_link("mock1", true);
  ASSERT_TRUE(run_with_losses([&] { return is_done(1); }));
  a->collect(now);
  EXPECT_TRUE(to_b->condition(now).ok()) << to_b->condition(now).to_string();
}

TEST_F(LinkTrials, WhatIsOverdueSaysWhichBoundWasFull) {
  options.pair.send_depth = 16;
  start();
  connect();
  fabric.hold = true;
  std::vector<Piece> pieces(64);
  std::uint64_t taken = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    pieces[i] = {a->memory.data() + i * 4096, i * 4096, 4096};
    taken += submit(Operation::kWrite, {&pieces[i], 1}, i + 1).taken;
  }
  ASSERT_LT(taken, pieces.size());
  const std::string text = to_b->condition(now).to_string();
  EXPECT_NE(text.find("send_depth = 16"), std::string::npos) << text;
  fabric.hold = false;
  fabric.deliver();
  ASSERT_TRUE(run([&] { return a->done.size() == taken; }));
}

}  // namespace
}  // namespace hawser::backend::verbs
