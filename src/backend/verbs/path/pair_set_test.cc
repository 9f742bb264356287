// Which queue pair of a path takes a chunk.

#include "backend/verbs/path/pair_set.h"

#include <gtest/gtest.h>

#include "backend/verbs/path/test_pairs.h"

namespace hawser::backend::verbs {
namespace {

class PairSetTest : public TwoPairs {
 protected:
  void TearDown() override {
    pairs = PairSet();
    others.clear();
    TwoPairs::TearDown();
  }
  /// Adds a queue pair to a port of the peer's, connected to one there.
  PathPair& add(std::uint32_t remote, std::uint64_t mbit_per_s, bool is_connected = true) {
    const PairPlace place{
        .number = static_cast<std::uint8_t>(pairs.size()), .lane = 0, .remote = remote, .mbit_per_s = mbit_per_s};
    pairs.add(pair_of(*a, proto::QueuePairRole::kActive, place));
    others.push_back(pair_of(*b, proto::QueuePairRole::kPassive, {.number = place.number}));
    PathPair& added = pairs[place.number];
    if (!is_connected) return added;
    added.feed(proto::QueuePairEvent::kWant, now);
    connect(*a, added, *b, *others.back(), now);
    return added;
  }
  static VerbsBinding binding_of(std::initializer_list<std::uint32_t> keys) {
    VerbsBinding binding;
    for (const std::uint32_t key : keys) binding.keys.push_back({.iova = key, .rkey = key});
    return binding;
  }
  static Chunk chunk_of(std::uint64_t bytes) {
    Chunk chunk;
    chunk.bytes = bytes;
    return chunk;
  }

  PairSet pairs;
  std::vector<std::unique_ptr<PathPair>> others;
};

TEST_F(PairSetTest, TheOnlyOneTakesAChunkOnceIfItIsReadyAndHasAKey) {
  const VerbsBinding both = binding_of({1, 2});
  PathPair& only = add(1, 100);
  std::uint64_t passed = 0;
  EXPECT_EQ(pairs.best(chunk_of(10), both, &passed), &only);
  EXPECT_EQ(pairs.best(chunk_of(10), both, &passed), nullptr) << "it was passed";
  passed = 0;
  EXPECT_EQ(pairs.best(chunk_of(10), binding_of({1}), &passed), nullptr) << "its port has no key";
  only.fault(Status(Code::kDisconnected, "broken"), now);
  passed = 0;
  EXPECT_EQ(pairs.best(chunk_of(10), both, &passed), nullptr);
  EXPECT_EQ(pairs.ready_first(), nullptr);
}

TEST_F(PairSetTest, TheFasterRailComesFirstWhereBothSpeedsAreKnown) {
  const VerbsBinding both = binding_of({1, 2});
  PathPair& slow = add(0, 100);
  PathPair& fast = add(1, 400);
  std::uint64_t passed = 0;
  EXPECT_EQ(pairs.best(chunk_of(1000), both, &passed), &fast);
  EXPECT_EQ(pairs.best(chunk_of(1000), both, &passed), &slow);
  EXPECT_EQ(pairs.best(chunk_of(1000), both, &passed), nullptr);
}

TEST_F(PairSetTest, WhereASpeedIsNotKnownAllCountAsEquallyFast) {
  const VerbsBinding both = binding_of({1, 2});
  PathPair& unknown = add(0, 0);
  add(1, 400);
  std::uint64_t passed = 0;
  EXPECT_EQ(pairs.best(chunk_of(1000), both, &passed), &unknown);
}

TEST_F(PairSetTest, ARegionIsReachedByReadyOnesWithAKey) {
  EXPECT_TRUE(pairs.may_reach(binding_of({1}))) << "it is not known yet which ports are in use";
  add(0, 100);
  EXPECT_FALSE(add(1, 100, /*is_connected=*/false).is_ready());
  EXPECT_TRUE(pairs.reaches(binding_of({1})));
  EXPECT_TRUE(pairs.may_reach(binding_of({0, 2})));
  EXPECT_FALSE(pairs.reaches(binding_of({0, 2}))) << "the port with a key has no queue pair that is ready";
  EXPECT_FALSE(pairs.may_reach(binding_of({0, 0, 3})));
}

TEST_F(PairSetTest, AQueuePairIsFoundByTheDevicesNumber) {
  PathPair& first = add(0, 100);
  PathPair& second = add(0, 100);
  EXPECT_EQ(pairs.find(0, first.qp().number()), &first);
  EXPECT_EQ(pairs.find(0, second.qp().number()), &second);
  EXPECT_EQ(pairs.find(1, second.qp().number()), nullptr);
  EXPECT_EQ(pairs.ready_first(), &first);
}

TEST_F(PairSetTest, WhatWaitsForAFenceIsCountedAndDue) {
  PathPair& first = add(0, 100);
  EXPECT_TRUE(pairs.is_idle());
  EXPECT_EQ(pairs.next_deadline(), Instant::max());
  Flight flight;
  flight.chunk.transfer = 5;
  first.lost().add({flight}, 1, now, std::chrono::seconds(2));
  EXPECT_FALSE(pairs.is_idle());
  EXPECT_EQ(pairs.lost(), 1u);
  EXPECT_EQ(pairs.next_deadline(), now + std::chrono::seconds(2));
  EXPECT_TRUE(pairs.is_stuck(now + std::chrono::seconds(2)));
  EXPECT_FALSE(pairs.cancel(5)) << "it is on no queue pair";
  EXPECT_EQ(pairs.next_deadline(), now + LostFlights::kLinger) << "but it is marked";
}

}  // namespace
}  // namespace hawser::backend::verbs
