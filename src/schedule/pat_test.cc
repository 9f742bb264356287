// What PAT sends, how far, and what it keeps for that; and when it is chosen. That results are right:
// collective_test.cc.

#include "schedule/pat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "schedule/collective.h"
#include "schedule/placed.h"

namespace hawser::schedule {
namespace {

/// Blocks of `count` elements each. No hosts: one host.
Call call_of(Operation operation, std::vector<std::uint32_t> hosts, std::uint32_t size, std::uint64_t count) {
  Call call{.operation = operation, .size = size, .element_bytes = 4, .hosts = std::move(hosts)};
  call.counts.assign(size, count);
  return call;
}

struct Traffic {
  std::uint64_t elements = 0;  ///< Sent by the rank that sends most,
  std::uint64_t leave = 0;     ///< and from its host to others, by all of the ranks of host 0.
  std::size_t rounds = 0;      ///< With messages, at the rank that has most.
  std::size_t far_rounds = 0;  ///< Rounds in which that rank sends to other hosts.
  std::uint64_t scratch = 0;
};

Traffic traffic(Call call, Algorithm algorithm) {
  Traffic most;
  for (call.rank = 0; call.rank < call.size; ++call.rank) {
    const Schedule schedule = make_schedule(call, algorithm);
    Traffic own;
    for (std::size_t i = 0; i < schedule.rounds(); ++i) {
      bool talks = false, is_far = false;
      for (const Step& step : schedule.round(i)) {
        talks = talks || step.action == Action::kSend || step.action == Action::kReceive;
        if (step.action != Action::kSend) continue;
        own.elements += step.from.count;
        const bool leaves = !call.hosts.empty() && call.hosts[step.peer] != call.hosts[call.rank];
        is_far = is_far || leaves;
        if (leaves && call.hosts[call.rank] == 0) most.leave += step.from.count;
      }
      own.rounds += talks ? 1 : 0;
      own.far_rounds += is_far ? 1 : 0;
    }
    most.elements = std::max(most.elements, own.elements);
    most.rounds = std::max(most.rounds, own.rounds);
    most.far_rounds = std::max(most.far_rounds, own.far_rounds);
    most.scratch = std::max(most.scratch, schedule.scratch());
  }
  return most;
}

TEST(Pat, SmallBlocksTakeAsFewRoundsAndBytesAsThereCanBe) {
  for (const Operation operation : {Operation::kAllGather, Operation::kReduceScatter}) {
    for (std::uint32_t size = 2; size <= 65; ++size) {
      const Traffic its = traffic(call_of(operation, {}, size, 3), Algorithm::kPat);
      EXPECT_EQ(its.rounds, static_cast<std::size_t>(std::bit_width(size - 1))) << size;
      EXPECT_EQ(its.elements, 3 * std::uint64_t{size - 1}) << size;
    }
  }
}

TEST(Pat, EachBlockComesToEachHostOnce) {
  for (const Operation operation : {Operation::kAllGather, Operation::kReduceScatter}) {
    for (const bool in_turn : {false, true}) {
      const Call call = call_of(operation, placed(4, 8, in_turn), 32, 5);
      const Traffic its = traffic(call, Algorithm::kPat);
      EXPECT_EQ(its.leave, 5U * 8U * 3U) << "this host's blocks, to each of three others";
      EXPECT_EQ(its.rounds, 2U + 3U);
      EXPECT_EQ(its.far_rounds, 2U);
      // In turn, as it happens, the distances of its large rounds lead to ranks of the same host.
      if (in_turn) continue;
      EXPECT_GE(traffic(call, Algorithm::kCirculant).leave, 6 * its.leave) << "near ranks first, far ones last";
    }
  }
}

TEST(Pat, OnOneHostItSendsFewBlocksFarAndManyNear) {
  Call call = call_of(Operation::kAllGather, {}, 16, 1);
  const Schedule schedule = make_schedule(call, Algorithm::kPat);
  std::vector<std::pair<std::uint32_t, std::uint64_t>> sent;
  for (std::size_t i = 0; i < schedule.rounds(); ++i) {
    for (const Step& step : schedule.round(i)) {
      if (step.action == Action::kSend) sent.emplace_back(step.peer, step.from.count);
    }
  }
  EXPECT_EQ(sent, (std::vector<std::pair<std::uint32_t, std::uint64_t>>{{8, 1}, {4, 2}, {2, 4}, {1, 8}}));
}

TEST(Pat, WhatIsStagedDoesNotGrowWithTheWorld) {
  for (const std::uint32_t size : {64U, 512U}) {
    const Call call = call_of(Operation::kAllGather, {}, size, 1'000);
    const std::uint64_t bytes = traffic(call, Algorithm::kPat).scratch * call.element_bytes;
    EXPECT_LE(bytes, 2 * kPatStaged) << size;
    EXPECT_GT(bytes, kPatStaged) << size;
    EXPECT_EQ(traffic(call_of(Operation::kAllGather, {}, size, 1 << 20), Algorithm::kPat).scratch, 0U)
        << "large blocks go from where they lie";
  }
  // A rank keeps what it is about to combine beside a copy of its input.
  const Call call = call_of(Operation::kReduceScatter, {}, 64, kPatBytes / 4);
  EXPECT_LE(traffic(call, Algorithm::kPat).scratch * 4, 64 * kPatBytes + kPatBytes);
  EXPECT_GE(traffic(call, Algorithm::kCirculant).scratch * 4, (64 + 32) * kPatBytes);
}

TEST(Pat, IsChosenWhereHostsHaveSeveralRanksEach) {
  for (const Operation operation : {Operation::kAllGather, Operation::kReduceScatter}) {
    for (const std::uint64_t count : {1, 256, 1 << 18}) {
      const Call call = call_of(operation, placed(4, 8, false), 32, count);
      EXPECT_EQ(choices(call, CostModel())[0].algorithm, Algorithm::kPat) << count;
      for (const auto& hosts : {std::vector<std::uint32_t>(), placed(1, 32, false), placed(32, 1, false)}) {
        for (const Choice& choice : choices(call_of(operation, hosts, 32, count), CostModel())) {
          EXPECT_NE(choice.algorithm, Algorithm::kPat);
        }
      }
    }
    std::vector<std::uint32_t> hosts = placed(4, 8, false);
    hosts[31] = 0;
    const Call uneven = call_of(operation, hosts, 32, 1);
    for (const Choice& choice : choices(uneven, CostModel())) EXPECT_NE(choice.algorithm, Algorithm::kPat);
  }
  Call ordered = call_of(Operation::kReduceScatter, placed(4, 8, false), 32, 1), fixed = ordered;
  ordered.commutes = false;
  fixed.reproducible = true;
  for (const Call& call : {ordered, fixed}) {
    for (const Choice& choice : choices(call, CostModel())) EXPECT_NE(choice.algorithm, Algorithm::kPat);
  }
}

}  // namespace
}  // namespace hawser::schedule
