#include "schedule/schedule.h"

#include <gtest/gtest.h>

#include <array>

#include "schedule/members.h"

namespace hawser::schedule {
namespace {

TEST(Schedule, RoundsAndWhatIsInThem) {
  Schedule schedule;
  EXPECT_EQ(schedule.rounds(), 0U);
  schedule.end_round();  // An empty one is none.
  EXPECT_EQ(schedule.rounds(), 0U);
  schedule.send(3, {Buffer::kInput, 0, 4});
  schedule.receive(2, {Buffer::kOutput, 4, 4});
  schedule.end_round();
  schedule.end_round();
  schedule.copy({Buffer::kInput, 0, 1}, {Buffer::kOutput, 0, 1});
  EXPECT_EQ(schedule.rounds(), 2U);
  ASSERT_EQ(schedule.round(0).size(), 2U);
  EXPECT_EQ(schedule.round(0)[1].peer, 2U);
  EXPECT_EQ(schedule.round(1)[0].action, Action::kCopy);
}

TEST(Schedule, WhatHasNoElementsIsLeftOut) {
  Schedule schedule;
  schedule.send(1, {Buffer::kInput, 7, 0});
  schedule.receive(1, {Buffer::kInput, 7, 0});
  schedule.combine({Buffer::kInput, 7, 0}, {Buffer::kOutput, 0, 0});
  EXPECT_EQ(schedule.rounds(), 0U);
  schedule.send_nothing(1);
  EXPECT_EQ(schedule.rounds(), 1U);
}

TEST(Schedule, ScratchLiesBehindWhatWasTakenBefore) {
  Schedule schedule;
  EXPECT_EQ(schedule.take_scratch(10), 0U);
  EXPECT_EQ(schedule.take_scratch(5), 10U);
  EXPECT_EQ(schedule.scratch(), 15U);
}

TEST(Blocks, EvenOnesDifferByOne) {
  const Blocks blocks = Blocks::even(11, 4);
  EXPECT_EQ(blocks.size(), 4U);
  EXPECT_EQ(blocks.total(), 11U);
  EXPECT_EQ(blocks.count(0), 3U);
  EXPECT_EQ(blocks.count(2), 3U);
  EXPECT_EQ(blocks.count(3), 2U);
  EXPECT_EQ(blocks.at(3), 9U);
  EXPECT_EQ(Blocks::even(2, 4).count(2), 0U);
  const Slice two = blocks.slice(Buffer::kScratch, 1, 3);
  EXPECT_EQ(two.at, 3U);
  EXPECT_EQ(two.count, 6U);
}

TEST(Blocks, OfGivenSizes) {
  const std::array<std::uint64_t, 3> counts = {2, 0, 5};
  const Blocks blocks(counts);
  EXPECT_EQ(blocks.total(), 7U);
  EXPECT_EQ(blocks.at(2), 2U);
  EXPECT_EQ(Blocks::equal(6, 3).at(2), 12U);
}

TEST(Members, AreNumberedFromTheRoot) {
  const Members me = Members::from_root(1, 5, 3);
  EXPECT_EQ(me.rank, 3U);
  EXPECT_EQ(me.world_rank(0), 3U);
  EXPECT_EQ(me.world_rank(me.rank), 1U);
  EXPECT_EQ(me.after(1), 2U);
  EXPECT_EQ(me.before(3), 3U);
  EXPECT_EQ(me.number_after(2), 0U);
  EXPECT_EQ(me.number_before(4), 4U);
}

}  // namespace
}  // namespace hawser::schedule
