// What phases a call has. That the results are right: collective_test.cc.

#include "schedule/host_phases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "schedule/hosts.h"
#include "schedule/placed.h"

namespace hawser::schedule {
namespace {

HostPhases phases_of(const Call& call, Algorithm algorithm = Algorithm::kBoardsInHosts) {
  return host_phases(call, algorithm, {});
}

TEST(HostPhases, ABarrierMeetsBeforeAndAfterWhatLeadersDo) {
  Call call{.operation = Operation::kBarrier, .size = 8, .hosts = placed(2, 4, false)};
  for (call.rank = 0; call.rank < call.size; ++call.rank) {
    const HostPhases phases = phases_of(call);
    EXPECT_EQ(phases.before->call.operation, Operation::kBarrier);
    EXPECT_EQ(phases.after->call.size, 4U);
    EXPECT_EQ(phases.between.rounds() > 0, call.rank % 4 == 0);
  }
}

TEST(HostPhases, ARootThatReducesInPlaceIsTheOnlyOneThatDoes) {
  Call call{.operation = Operation::kReduce,
            .size = 4,
            .root = 3,
            .count = 2,
            .hosts = {0, 0, 1, 1},
            .has_input_in_output = true};
  for (call.rank = 0; call.rank < call.size; ++call.rank) {
    const HostPhases phases = phases_of(call);
    EXPECT_EQ(phases.before->input.buffer == Buffer::kOutput, call.rank == 3) << call.rank;
    EXPECT_EQ(phases.before->output.buffer == Buffer::kScratch, call.rank == 0) << call.rank;
    EXPECT_EQ(phases.between.scratch() >= 2, call.rank == 0 || call.rank == 3) << call.rank;
    EXPECT_FALSE(phases.after.has_value());
  }
}

TEST(HostPhases, OnlyLeadersSendBetweenHosts) {
  for (const Operation operation :
       {Operation::kAllGather, Operation::kReduceScatter, Operation::kGather, Operation::kScatter}) {
    Call call{.operation = operation, .size = 6, .root = 3, .counts = {1, 2, 3, 4, 5, 6}, .hosts = {0, 0, 0, 1, 1, 2}};
    for (call.rank = 0; call.rank < call.size; ++call.rank) {
      const HostPhases phases = phases_of(call);
      const bool is_leader = Hosts(call.hosts, call.rank, call.root).is_leader();
      EXPECT_EQ(phases.between.rounds() > 0, is_leader) << to_string(operation) << " " << call.rank;
      const bool needs_none =
          operation == Operation::kAllGather || (operation != Operation::kReduceScatter && call.rank == 3);
      EXPECT_EQ(phases.between.scratch() > 0, is_leader && !needs_none) << to_string(operation) << " " << call.rank;
      EXPECT_EQ(phases.last.rounds(), 0U) << "the order of hosts is that of ranks";
    }
  }
}

TEST(HostPhases, BlocksOfHostsThatAreNoRunsOfRanksArePacked) {
  Call call{.operation = Operation::kAllGather, .size = 4, .counts = {1, 2, 3, 4}, .hosts = {0, 1, 0, 1}};
  const auto unpacked = [&] { return phases_of(call).last.rounds() > 0; };
  EXPECT_TRUE(unpacked());
  call.operation = Operation::kGather;
  EXPECT_TRUE(unpacked());
  call.rank = 1;
  EXPECT_FALSE(unpacked()) << "it is not the root";
}

TEST(HostPhases, ALargeAllReduceHasAsManyLanesAsTheSmallestHostHasRanks) {
  Call call{.operation = Operation::kAllReduce, .size = 6, .count = 1001, .hosts = {0, 0, 0, 0, 1, 1}};
  std::uint64_t sent = 0;
  for (call.rank = 0; call.rank < call.size; ++call.rank) {
    const HostPhases phases = phases_of(call, Algorithm::kStagedInHosts);
    EXPECT_EQ(phases.before->call.operation, Operation::kReduceScatter);
    EXPECT_EQ(phases.before->call.counts.size(), call.rank < 4 ? 4U : 2U);
    EXPECT_EQ(phases.before->call.counts[1], 500U);
    EXPECT_EQ(phases.between.rounds() > 0, call.rank < 2 || call.rank > 3) << call.rank;
    EXPECT_EQ(phases_of(call).before->call.operation, Operation::kReduce) << "small ones go by leaders";
    if (call.rank > 3) continue;
    for (std::size_t round = 0; round < phases.between.rounds(); ++round) {
      for (const Step& step : phases.between.round(round)) sent += step.action == Action::kSend ? step.from.count : 0;
    }
  }
  EXPECT_EQ(sent, call.count) << "each element leaves the host once";
  call.hosts = {0, 0, 0, 0, 0, 1};
  call.rank = 0;
  EXPECT_EQ(phases_of(call, Algorithm::kStagedInHosts).before->call.operation, Operation::kReduce);
}

TEST(HostPhases, TakeATurnForEachPhaseOrMoreInPieces) {
  Call call{.operation = Operation::kAllReduce, .size = 4, .count = 1, .element_bytes = 4, .hosts = {0, 0, 1, 1}};
  const auto turns = [&](Algorithm algorithm) {
    const HostPhases phases = phases_of(call, algorithm);
    return turns_of(phases.before, {}) + turns_of(phases.after, {});
  };
  EXPECT_EQ(turns(Algorithm::kBoardsInHosts), 2U);
  call.count = 4 * kBoardBytesMax / 4;
  EXPECT_EQ(turns(Algorithm::kStagedInHosts), 6U) << "four shares of half a board to combine, two boards to gather";
  call.operation = Operation::kBroadcast;
  EXPECT_EQ(turns(Algorithm::kStagedInHosts), 4U);
}

}  // namespace
}  // namespace hawser::schedule
