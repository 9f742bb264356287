// What is remembered of choices is what would be chosen anew.

#include "schedule/choice_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace hawser::schedule {
namespace {

std::vector<Call> many_calls() {
  std::vector<Call> all;
  for (const Operation operation : {Operation::kBarrier, Operation::kBroadcast, Operation::kReduce,
                                    Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter}) {
    const bool has_blocks = operation == Operation::kAllGather || operation == Operation::kReduceScatter;
    for (std::uint64_t count = 0; count < (std::uint64_t{1} << 30); count = count * 3 + 1) {
      for (const unsigned flags : {0U, 1U, 2U, 3U, 5U, 6U, 7U}) {
        for (const std::uint64_t bytes : {1U, 8U}) {
          Call call{.operation = operation, .size = 4, .element_bytes = bytes};
          (has_blocks ? call.counts.assign(4, count), call.count : call.count) = has_blocks ? 0 : count;
          call.reproducible = (flags & 1) != 0;
          call.may_be_mapped = (flags & 2) != 0;
          call.may_use_boards = (flags & 4) != 0;
          all.push_back(call);
          call.hosts = {0, 0, 1, 1};
          all.push_back(call);
        }
      }
    }
  }
  return all;
}

TEST(ChoiceMemory, ChoosesWhatIsCheapest) {
  ChoiceMemory memory;
  for (int round = 0; round < 2; ++round) {
    for (const Call& call : many_calls()) {
      const Algorithm first = memory.cheapest(call, {});
      ASSERT_EQ(first, cheapest(call, {})) << to_string(call.operation) << " " << call.count;
      ASSERT_EQ(memory.cheapest(call, {}), first);
    }
  }
}

TEST(ChoiceMemory, WorksTheSameCallOutOnce) {
  ChoiceMemory memory;
  const Call call{
      .operation = Operation::kAllReduce, .size = 2, .count = 2, .element_bytes = 4, .may_use_boards = true};
  for (int i = 0; i < 100; ++i) memory.cheapest(call, {});
  EXPECT_EQ(memory.misses(), 1u);
  const Call far{.operation = Operation::kAllReduce, .size = 2, .count = 2, .element_bytes = 4, .hosts = {0, 1}};
  for (int i = 0; i < 100; ++i) memory.cheapest(far, {});
  EXPECT_EQ(memory.misses(), 2u);
}

TEST(ChoiceMemory, ForgetsWhereTheModelIsAnotherOne) {
  ChoiceMemory memory;
  const Call call{
      .operation = Operation::kAllReduce, .size = 2, .count = 2, .element_bytes = 4, .may_use_boards = true};
  EXPECT_EQ(memory.cheapest(call, {}), Algorithm::kBoards);
  CostModel slow;
  slow.board_ns = kCallNsMax;
  memory.forget();
  EXPECT_EQ(memory.cheapest(call, slow), cheapest(call, slow));
  EXPECT_NE(memory.cheapest(call, slow), Algorithm::kBoards);
}

TEST(ChoiceMemory, RemembersAnEvenExchangeOnly) {
  ChoiceMemory memory;
  Call call{.operation = Operation::kAllToAll, .size = 4, .counts = {1, 1, 1, 1}, .in_counts = {1, 1, 1, 1}};
  call.hosts = {0, 0, 1, 1};
  call.may_use_boards = true;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(memory.cheapest(call, {}), Algorithm::kDirect);
  EXPECT_EQ(memory.misses(), 2u) << "other ranks may have other counts";
  call.is_even = true;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(memory.cheapest(call, {}), cheapest(call, {}));
  EXPECT_EQ(memory.misses(), 3u);
  EXPECT_EQ(cheapest(call, {}), Algorithm::kBoardsInHosts);
}

// Their costs hang on more than a number can hold.
TEST(ChoiceMemory, DoesNotRememberUnevenCounts) {
  ChoiceMemory memory;
  for (const std::uint64_t last : {1U, 5'000'000U}) {
    const Call call{.operation = Operation::kAllGather,
                    .size = 3,
                    .counts = {1, 1, last},
                    .element_bytes = 4,
                    .may_be_mapped = true,
                    .may_use_boards = true};
    EXPECT_EQ(memory.cheapest(call, {}), cheapest(call, {}));
  }
}

}  // namespace
}  // namespace hawser::schedule
