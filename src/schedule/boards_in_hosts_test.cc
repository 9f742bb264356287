#include "schedule/boards_in_hosts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "schedule/hosts.h"
#include "schedule/placed.h"
#include "schedule/run_in_memory.h"

namespace hawser::schedule {
namespace {

constexpr std::uint64_t kCount = 5;

void append(Schedule& to, const Schedule& from) {
  for (std::size_t round = 0; round < from.rounds(); ++round) {
    for (const Step& step : from.round(round)) {
      if (step.action == Action::kSend) to.send(step.peer, step.from);
      if (step.action == Action::kReceive) to.receive(step.peer, step.to);
      if (step.action == Action::kCopy) to.copy(step.from, step.to);
      if (step.action == Action::kCombine) to.combine(step.from, step.to);
      if (step.action == Action::kCombineBefore) to.combine_before(step.from, step.to);
    }
    to.end_round();
  }
}

/// What ranks do on boards, as messages that say the same.
Schedule played(const Call& call) {
  const BoardsInHosts phases = boards_in_hosts(call, {});
  const std::vector<std::uint32_t> mates = Hosts::sharing(call.hosts, call.rank, call.size);
  Schedule made;
  made.take_scratch(phases.between.scratch());
  const auto phase = [&](const std::optional<Call>& its) {
    if (!its) return;
    EXPECT_EQ(mates[its->rank], call.rank);
    EXPECT_EQ(its->size, mates.size());
    if (its->operation == Operation::kBarrier) return;
    const bool reduces = its->operation == Operation::kReduce;
    const bool is_root = its->rank == its->root;
    const Slice input = {its->has_input_in_output ? Buffer::kOutput : Buffer::kInput, 0, its->count};
    const Slice result = {reduces ? phases.result : Buffer::kOutput, 0, its->count};
    if (reduces && is_root && !its->has_input_in_output) made.copy(input, result);
    made.end_round();
    for (std::uint32_t place = 0; place < its->size; ++place) {
      if (!is_root || place == its->root) continue;
      if (!reduces) made.send(mates[place], result);
      if (!reduces) continue;
      const Slice came = {Buffer::kScratch, made.take_scratch(its->count), its->count};
      made.receive(mates[place], came);
      made.combine(came, result);
    }
    if (!is_root && reduces) made.send(mates[its->root], input);
    if (!is_root && !reduces) made.receive(mates[its->root], result);
    made.end_round();
  };
  phase(phases.before);
  append(made, phases.between);
  phase(phases.after);
  return made;
}

/// Each rank's elements are its own; ranks of hosts for which `by_boards` is false send messages within the host.
void check(Call call, std::uint32_t boards_of) {
  const bool reduces = call.operation != Operation::kBroadcast;
  std::vector<RankState> ranks(call.size);
  Array sum(kCount, Element{0, 1});
  for (call.rank = 0; call.rank < call.size; ++call.rank) {
    RankState& state = ranks[call.rank];
    const bool by_boards = boards_of == 2 || call.hosts[call.rank] % 2 == boards_of;
    state.schedule = by_boards ? played(call) : by_messages(call, Algorithm::kBoardsInHosts, {}).schedule;
    Array own(kCount);
    for (std::uint64_t i = 0; i < kCount; ++i) own[i] = Element::of(call.rank, i);
    for (std::uint64_t i = 0; reduces && i < kCount; ++i) sum[i] = add(sum[i], own[i]);
    if (!reduces && call.rank == call.root) sum = own;
    state.input_is_output = call.has_input_in_output;
    const bool has_output = call.operation != Operation::kReduce || call.rank == call.root || call.has_input_in_output;
    if (has_output) state.output = state.input_is_output || call.rank == call.root ? own : Array(kCount);
    state.input = std::move(own);
  }
  InMemory memory(std::move(ranks), true, call.root);
  ASSERT_TRUE(memory.run());
  for (std::uint32_t rank = 0; rank < call.size; ++rank) {
    if (call.operation == Operation::kReduce && rank != call.root) continue;
    for (std::uint64_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(memory.ranks()[rank].output[i].hash, sum[i].hash) << to_string(call.operation) << " " << rank;
    }
  }
}

TEST(BoardsInHosts, GiveTheResultWhicheverHostsHaveBoards) {
  const std::vector<std::vector<std::uint32_t>> all = {placed(2, 2, false), placed(3, 4, true), {0, 1, 1, 1, 2, 0}};
  for (const auto& hosts : all) {
    const auto size = static_cast<std::uint32_t>(hosts.size());
    for (const Operation operation : {Operation::kBroadcast, Operation::kReduce, Operation::kAllReduce}) {
      for (std::uint32_t root = 0; root < (operation == Operation::kAllReduce ? 1 : size); ++root) {
        for (const bool in_place : {false, true}) {
          if (in_place && operation != Operation::kAllReduce) continue;
          for (const std::uint32_t boards_of : {0U, 1U, 2U}) {
            check({.operation = operation,
                   .size = size,
                   .root = root,
                   .count = kCount,
                   .hosts = hosts,
                   .has_input_in_output = in_place},
                  boards_of);
          }
        }
      }
    }
  }
}

TEST(BoardsInHosts, ABarrierMeetsBeforeAndAfterWhatLeadersDo) {
  Call call{.operation = Operation::kBarrier, .size = 8, .hosts = placed(2, 4, false)};
  for (call.rank = 0; call.rank < call.size; ++call.rank) {
    const BoardsInHosts phases = boards_in_hosts(call, {});
    EXPECT_EQ(phases.before->operation, Operation::kBarrier);
    EXPECT_EQ(phases.after->size, 4U);
    EXPECT_EQ(phases.between.rounds() > 0, call.rank % 4 == 0);
  }
}

TEST(BoardsInHosts, ARootThatReducesInPlaceIsTheOnlyOneThatDoes) {
  Call call{.operation = Operation::kReduce,
            .size = 4,
            .root = 3,
            .count = 2,
            .hosts = {0, 0, 1, 1},
            .has_input_in_output = true};
  for (call.rank = 0; call.rank < call.size; ++call.rank) {
    const BoardsInHosts phases = boards_in_hosts(call, {});
    EXPECT_EQ(phases.before->has_input_in_output, call.rank == 3) << call.rank;
    EXPECT_EQ(phases.result == Buffer::kScratch, call.rank == 0) << call.rank;
    EXPECT_EQ(phases.between.scratch() >= 2, call.rank == 0 || call.rank == 3) << call.rank;
    EXPECT_FALSE(phases.after.has_value());
  }
}

}  // namespace
}  // namespace hawser::schedule
