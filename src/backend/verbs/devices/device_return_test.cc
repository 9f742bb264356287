// A device that was removed and comes back, under its old name and with nothing else of what it was.

#include "backend/verbs/memory/region_keys.h"
#include "backend/verbs/memory/registration_fake.h"
#include "backend/verbs/port_test_pair.h"

namespace hawser::backend::verbs {
namespace {

class DeviceReturn : public VerbsPair {
 protected:
  void pass(Duration time) {
    run_slow([] { return false; }, std::chrono::milliseconds(1), static_cast<int>(time / std::chrono::milliseconds(1)));
  }
  void lose(Side& side, const std::string& name) {
    fabric.remove(name);
    ASSERT_TRUE(run_slow([&] { return side.looks > 0; }));
  }
  void return_to(Side& side, const std::string& name) {
    fabric.put_back(name);
    ASSERT_TRUE(run_slow([&] { return side.renewals > 0; }));
  }
  void meet_again() {
    const int ups = a->ups;
    to_b = open();
    ASSERT_TRUE(run_slow([&] { return a->ups > ups; })) << to_b->describe();
  }
  void move(std::uint64_t cookie) {
    const std::size_t at = cookie * 4096;
    const Piece piece[] = {{a->memory.data() + at, at, 4096}};
    ASSERT_EQ(submit(Operation::kWrite, piece, cookie).taken, 1u) << to_b->describe();
    ASSERT_TRUE(run_slow([&] { return is_done(cookie); })) << to_b->describe();
    EXPECT_TRUE(outcome(cookie).ok()) << outcome(cookie).to_string();
    EXPECT_TRUE(std::equal(piece[0].local, piece[0].local + 4096, b->memory.begin() + static_cast<std::ptrdiff_t>(at)));
  }
  Result<Binding*> try_bind(std::string_view extra) { return to_b->bind(ref_of(*region, extra)); }
};

TEST_F(DeviceReturn, TheOpenersIsOpenedAnewWithPauses) {
  start();
  connect();
  move(1);
  lose(*a, "mock0");
  ASSERT_TRUE(run_slow([&] { return !a->down.empty(); })) << "nothing is left to carry the path";
  const int before = a->looks;
  pass(std::chrono::seconds(60));
  EXPECT_GE(a->looks, before + 5);
  EXPECT_LE(a->looks, before + 20) << "pauses of 5 to 10 s at last";
  return_to(*a, "mock0");
  meet_again();
  binding = bind(*region, b->extra);
  move(2);
  EXPECT_EQ(to_b->counters().queue_pairs.size(), 1u) << "no rail leads from what is gone";
}

TEST_F(DeviceReturn, ThePeersIsReachedByItsNewKeys) {
  start();
  connect();
  move(1);
  lose(*b, "mock1");
  ASSERT_TRUE(run_slow([&] { return !a->down.empty() && !b->down.empty(); }));
  return_to(*b, "mock1");
  meet_again();
  const Result<Binding*> stale = try_bind(b->extra);
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code(), Code::kUnsupported) << "it goes by another path until its card is there";
  const std::string told = b->regions->told(*region);
  EXPECT_NE(told, b->extra);
  binding = *try_bind(told);
  move(2);
}

TEST_F(DeviceReturn, OfTwoThePathKeepsTheOtherAndANewPathHasBoth) {
  start({"mock0", "mock2"}, {"mock1", "mock3"});
  connect();
  lose(*b, "mock1");
  move(1);
  return_to(*b, "mock1");
  move(2);
  EXPECT_TRUE(a->down.empty() && b->down.empty());
  meet_again();
  ASSERT_TRUE(run_slow([&] {
    const auto pairs = to_b->counters().queue_pairs;
    return pairs.size() == 2 && pairs[0].state == "ready" && pairs[1].state == "ready";
  })) << to_b->describe();
  binding = bind(*region, b->extra);  // Of before: the new port is passed over.
  for (std::uint64_t i = 3; i < 8; ++i) move(i);
  Binding* const same = *try_bind(b->regions->told(*region));
  EXPECT_EQ(same, binding) << "plans hold it";
  std::array<Piece, 8> pieces;
  for (std::uint64_t i = 0; i < pieces.size(); ++i) {
    pieces[i] = {a->memory.data() + i * 4096, i * 4096, 4096};
    ASSERT_EQ(submit(Operation::kWrite, {&pieces[i], 1}, 100 + i).taken, 1u);
  }
  ASSERT_TRUE(run_slow([&] { return is_done(107); }));
  for (const QueuePairCounters& pair : to_b->counters().queue_pairs) EXPECT_GT(pair.flow.bytes_out, 0u);
}

// A chunk must not wait for a port that it has no key for.
TEST_F(DeviceReturn, WhatHasNoKeyForThePortThatIsLeftGoesBackToTheAgent) {
  start({"mock0", "mock2"}, {"mock1", "mock3"});
  connect();
  lose(*b, "mock1");
  return_to(*b, "mock1");
  meet_again();
  ASSERT_TRUE(run_slow([&] { return to_b->counters().queue_pairs.at(1).state == "ready"; }));
  binding = bind(*region, b->extra);
  options.patience = std::chrono::hours(1);
  fabric.set_gone("mock3", true);
  ASSERT_TRUE(run_slow([&] {
    std::size_t ready = 0;
    for (const auto& pair : to_b->counters().queue_pairs) ready += pair.state == "ready" ? 1 : 0;
    fabric.expire();
    if (ready == 2 && !is_done(100)) {
      const Piece piece[] = {{a->memory.data(), 0, 4096}};
      static_cast<void>(submit(Operation::kWrite, piece, 100));  // Shows at this end that the other is gone.
    }
    return ready == 1;
  })) << to_b->describe();
  const Piece piece[] = {{a->memory.data(), 0, 4096}};
  ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u) << to_b->describe();
  ASSERT_TRUE(run_slow([&] { return is_done(1); })) << to_b->describe();
  EXPECT_EQ(outcome(1).code(), Code::kUnsupported) << outcome(1).to_string();
  EXPECT_EQ(outcome(1).buffer(), BufferState::kUntouched);
  fabric.set_gone("mock3", false);
}

TEST_F(DeviceReturn, ItHasAllRegionsThatAreThereAndThoseThatComeAndGo) {
  start();
  connect();
  lose(*b, "mock1");
  std::vector<std::byte> more(4096);
  RegionEntry entry;
  entry.base = more.data();
  entry.size = more.size();
  EXPECT_FALSE(b->regions->add(*(*b->table.add(std::move(entry))))) << "nothing can be registered now";
  const std::uint64_t pinned = fabric.memory.bytes_pinned();
  return_to(*b, "mock1");
  EXPECT_GE(fabric.memory.bytes_pinned(), pinned + kMemory);
  b->table.close(region->index, region->generation);
  std::string holder;
  EXPECT_TRUE(b->port->region_quiet(region->index, region->generation, &holder)) << holder;
  EXPECT_EQ(fabric.memory.bytes_pinned(), pinned);
}

// What is gone has its place among the ports for good, and must not be in the way of what is there.
TEST_F(DeviceReturn, RegionsAreAddedWhereOneIsGoneAndOnceItIsBack) {
  start({"mock0", "mock2"}, {"mock1", "mock3"});
  connect();
  const auto added = [&](Side& side) {
    RegionEntry entry;
    entry.key = {7, 9};
    entry.base = side.memory.data();
    entry.size = side.memory.size();
    entry.rights = Rights::kReadWrite;
    auto made = *side.table.add(std::move(entry));
    const Result<std::string> extra = side.regions->add(*made);
    EXPECT_TRUE(extra.has_value()) << extra.error().to_string();
    return std::pair(made, extra ? *extra : std::string());
  };
  const auto ours = added(*a);
  lose(*b, "mock1");
  const auto between = added(*b);
  region = between.first;
  binding = bind(*region, between.second);
  for (std::uint64_t i = 1; i < 4; ++i) move(i);
  return_to(*b, "mock1");
  meet_again();
  const auto after = added(*b);
  for (const auto& each : {between, after}) {
    region = each.first;
    binding = bind(*region, b->regions->told(*region));
    for (std::uint64_t i = 4; i < 8; ++i) move(10 * region->index + i);
    std::string holder;
    b->table.close(region->index, region->generation);
    EXPECT_TRUE(b->port->region_quiet(region->index, region->generation, &holder)) << holder;
  }
  std::string holder;
  EXPECT_TRUE(a->port->region_quiet(ours.first->index, ours.first->generation, &holder)) << holder;
}

TEST_F(DeviceReturn, APathThatIsOpenedMeanwhileDoesWithoutIt) {
  start({"mock0", "mock2"}, {"mock1", "mock3"});
  connect();
  lose(*a, "mock0");
  lose(*b, "mock3");
  meet_again();
  ASSERT_TRUE(run_slow([&] { return b->ups == 2; }));
  binding = bind(*region, b->extra);
  move(1);
  exchange(100, 100, [](auto&) {});
  EXPECT_GT(by_queue_pair(to_b), 0u) << to_b->describe();
  EXPECT_EQ(to_b->counters().queue_pairs.size(), 1u) << to_b->describe();
}

TEST_F(DeviceReturn, OneThatIsSilentForAMomentIsNotOpenedTwice) {
  start();
  connect();
  fabric.fail("get_async_event", EIO);
  pass(std::chrono::seconds(5));
  EXPECT_EQ(a->looks + b->looks, 0);
  move(1);
}

TEST_F(DeviceReturn, EachStepOfOpeningItMayFail) {
  for (const char* call : {"open_device", "query_port", "create_comp_channel", "alloc_pd"}) {
    SCOPED_TRACE(call);
    start();
    connect();
    lose(*a, "mock0");
    fabric.put_back("mock0");
    fabric.fail(call, ENOMEM);
    const int before = a->looks;
    ASSERT_TRUE(run_slow([&] { return a->renewals > 0; }));
    EXPECT_GE(a->looks, before + 2);
    meet_again();
    binding = bind(*region, b->extra);
    move(1);
    a.reset();
    b.reset();
  }
}

TEST_F(DeviceReturn, ItMayGoManyTimesAndNotForEver) {
  start();
  connect();
  for (std::size_t i = 1; i < wire::kPortsMax; ++i) {
    a->renewals = a->looks = 0;
    lose(*a, "mock0");
    return_to(*a, "mock0");
  }
  meet_again();
  binding = bind(*region, b->extra);
  move(1);
  a->renewals = a->looks = 0;
  fabric.remove("mock0");
  fabric.put_back("mock0");
  pass(std::chrono::seconds(20));
  EXPECT_EQ(a->looks, 0) << "peers know no more ports";
}

/// Something happens while memory is being registered.
class BusyFake final : public MemoryFake {
 public:
  BusyFake() : MemoryFake({"mock0", "mock1", "mock2"}) {}
  std::function<void()> meanwhile = [] {};
  ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t size, int access) override {
    std::exchange(meanwhile, [] {})();
    return MemoryFake::reg_mr(pd, address, size, access);
  }
};

TEST(DeviceReturnRegions, OneThatIsBeingToldOfADeviceHearsOfTheNextAsWell) {
  const auto fake = std::make_shared<BusyFake>();
  std::vector<std::shared_ptr<Nic>> nics;
  for (const char* name : {"mock0", "mock1", "mock2"}) {
    nics.push_back(std::make_shared<Nic>(std::make_shared<NicDevice>(Domain::open(fake, name).value())));
  }
  Regions regions({nics[0]}, {});
  const auto returns = [&](std::size_t nic) { EXPECT_TRUE(regions.add_nics({&nics[nic], 1}).ok()); };
  fake->meanwhile = [&] {
    returns(1);
    fake->meanwhile = [&] { returns(2); };
  };
  std::vector<std::byte> memory(4096);
  RegionEntry entry;
  entry.base = memory.data();
  entry.size = memory.size();
  const std::string extra = *regions.add(entry);
  EXPECT_EQ(decode_region_keys(extra, entry.key)->size(), 3u);
  EXPECT_EQ(fake->memories, 3);
}

}  // namespace
}  // namespace hawser::backend::verbs
