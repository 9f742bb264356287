// What goes between hosts on two levels, and when two levels are chosen. That the results are right:
// collective_test.cc.

#include "schedule/two_levels.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "schedule/collective.h"
#include "schedule/placed.h"

namespace hawser::schedule {
namespace {

/// Elements that leave the ranks of host 0 for other hosts.
std::uint64_t sent_between_hosts(Call call, Algorithm algorithm) {
  std::uint64_t sent = 0;
  for (call.rank = 0; call.rank < call.size; ++call.rank) {
    if (call.hosts[call.rank] != 0) continue;
    const Schedule schedule = make_schedule(call, algorithm);
    for (std::size_t round = 0; round < schedule.rounds(); ++round) {
      for (const Step& step : schedule.round(round)) {
        if (step.action == Action::kSend && call.hosts[step.peer] != 0) sent += step.from.count;
      }
    }
  }
  return sent;
}

Call large(Operation operation, std::vector<std::uint32_t> hosts) {
  const auto size = static_cast<std::uint32_t>(hosts.size());
  return {.operation = operation, .size = size, .count = 1 << 20, .element_bytes = 4, .hosts = std::move(hosts)};
}

TEST(TwoLevels, AnAllReduceSendsEachElementOfAHostTwiceToAnotherAtMost) {
  for (const bool in_turn : {false, true}) {
    const Call call = large(Operation::kAllReduce, placed(4, 8, in_turn));
    EXPECT_EQ(sent_between_hosts(call, Algorithm::kTwoLevels), 2 * call.count * 3 / 4);
  }
  const Call one_level = large(Operation::kAllReduce, placed(4, 8, false));
  EXPECT_GT(sent_between_hosts(one_level, Algorithm::kCirculant), 8 * one_level.count);
}

TEST(TwoLevels, AllRanksOfAHostSendBetweenHostsAtOnce) {
  Call call = large(Operation::kAllReduce, placed(2, 4, false));
  for (call.rank = 0; call.rank < call.size; ++call.rank) {
    bool has_sent = false;
    const Schedule schedule = make_schedule(call, Algorithm::kTwoLevels);
    for (std::size_t round = 0; round < schedule.rounds(); ++round) {
      for (const Step& step : schedule.round(round)) {
        has_sent = has_sent || (step.action == Action::kSend && call.hosts[step.peer] != call.hosts[call.rank]);
      }
    }
    EXPECT_TRUE(has_sent) << call.rank;
  }
}

TEST(TwoLevels, FewerElementsThanRanksOfAHostGoByTheLeaders) {
  const auto hosts = placed(2, 4, false);
  EXPECT_FALSE(is_sliced(Hosts(hosts, 0, 0), 3));
  EXPECT_TRUE(is_sliced(Hosts(hosts, 0, 0), 4));
  const std::vector<std::uint32_t> uneven = {0, 0, 0, 1};
  EXPECT_FALSE(is_sliced(Hosts(uneven, 0, 0), 100));
  const std::vector<std::uint32_t> lanes = {0, 0, 0, 0, 1, 1}, few = {0, 0, 0, 0, 0, 1, 1};
  EXPECT_TRUE(is_sliced(Hosts(lanes, 0, 0), 100)) << "two ranks of each host carry a half";
  EXPECT_FALSE(is_sliced(Hosts(few, 0, 0), 100)) << "most ranks of host 0 would only watch";
}

TEST(TwoLevels, ABarrierSendsOneMessageARoundFromEachHost) {
  Call call{.operation = Operation::kBarrier, .size = 32, .hosts = placed(4, 8, true)};
  std::size_t far = 0;
  for (call.rank = 0; call.rank < call.size; ++call.rank) {
    const Schedule schedule = make_schedule(call, Algorithm::kTwoLevels);
    for (std::size_t round = 0; round < schedule.rounds(); ++round) {
      for (const Step& step : schedule.round(round)) {
        far += step.action == Action::kSend && call.hosts[step.peer] != call.hosts[call.rank] ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(far, 4U * 2U);
}

/// An all_reduce of leaders goes by few rounds where messages between hosts are dear, and by few bytes where bytes are.
TEST(TwoLevels, WhatIsDoneOnALevelIsTheModelsChoice) {
  const auto rounds_by = [](const CostModel& model) {
    const Call call = large(Operation::kAllReduce, placed(4, 8, false));
    return make_schedule(call, Algorithm::kTwoLevels, model).rounds();
  };
  EXPECT_LT(rounds_by({.far_message_ns = 1e9, .far_byte_ns = 1e-9}),
            rounds_by({.far_message_ns = 1, .far_byte_ns = 1}));
}

TEST(TwoLevels, AreChosenWhereRanksShareHostsAndThereAreSeveral) {
  for (const Operation operation :
       {Operation::kBarrier, Operation::kBroadcast, Operation::kReduce, Operation::kAllReduce}) {
    EXPECT_EQ(choices(large(operation, placed(4, 8, false)), CostModel())[0].algorithm, Algorithm::kTwoLevels);
    for (const auto& hosts : {placed(1, 8, false), placed(8, 1, false), std::vector<std::uint32_t>()}) {
      Call call = large(operation, hosts);
      call.size = 8;
      for (const Choice& choice : choices(call, CostModel())) EXPECT_NE(choice.algorithm, Algorithm::kTwoLevels);
    }
  }
}

TEST(TwoLevels, AreNotForWhatDependsOnTheOrderOfRanks) {
  Call ordered = large(Operation::kAllReduce, placed(4, 8, false)), fixed = ordered;
  ordered.commutes = false;
  fixed.reproducible = true;
  for (const Call& call : {ordered, fixed}) {
    for (const Choice& choice : choices(call, CostModel())) EXPECT_NE(choice.algorithm, Algorithm::kTwoLevels);
  }
}

}  // namespace
}  // namespace hawser::schedule
