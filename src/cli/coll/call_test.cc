#include "cli/coll/call.h"

#include <gtest/gtest.h>

#include <vector>

namespace hawser::cli::coll {
namespace {

using schedule::Algorithm;
using What = schedule::Operation;

TEST(CollCall, HasTheBytesOfTheTensorOrOfAllBlocks) {
  EXPECT_EQ(call_of(What::kAllReduce, 4, {}, 1024).count, 256U);
  EXPECT_EQ(call_of(What::kAllGather, 4, {}, 1024).counts, std::vector<std::uint64_t>(4, 64));
  EXPECT_EQ(call_of(What::kAllReduce, 4, {}, 1).count, 1U) << "whole elements";
}

TEST(CollCall, RanksOfOneHostMapMemory) {
  EXPECT_TRUE(call_of(What::kBarrier, 2, {}, 0).may_use_boards);
  EXPECT_TRUE(call_of(What::kBarrier, 2, std::vector<std::uint32_t>{0, 0}, 0).may_be_mapped);
  const schedule::Call far = call_of(What::kBarrier, 2, std::vector<std::uint32_t>{0, 1}, 0);
  EXPECT_FALSE(far.may_use_boards || far.may_be_mapped);
  EXPECT_TRUE(call_of(What::kBarrier, 3, std::vector<std::uint32_t>{0, 1, 0}, 0).may_use_boards);
  EXPECT_EQ(far.hosts, (std::vector<std::uint32_t>{0, 1}));
}

/// Whatever the values are: each algorithm's cost is the sum of its parts.
TEST(CollCall, CostsAreTheSumOfTheirParts) {
  const schedule::CostModel model{.message_ns = 3'001,
                                  .byte_ns = 0.31,
                                  .combined_byte_ns = 0.07,
                                  .read_byte_ns = 0.19,
                                  .board_ns = 411,
                                  .far_message_ns = 9'001,
                                  .far_byte_ns = 0.9};
  for (const auto& hosts : {std::vector<std::uint32_t>(5, 0), std::vector<std::uint32_t>{0, 0, 1, 1, 2}}) {
    for (int number = 0; number <= static_cast<int>(What::kExclusiveScan); ++number) {
      for (const std::uint64_t bytes : {8U, 4'000U, 1U << 20}) {
        const schedule::Call call = call_of(static_cast<What>(number), 5, hosts, bytes);
        for (const schedule::Choice& choice : schedule::choices(call, model)) {
          const bool is_by_leaders = choice.algorithm == Algorithm::kTwoLevels ||
                                     choice.algorithm == Algorithm::kMappedInHosts ||
                                     schedule::has_phases(choice.algorithm);
          if (is_by_leaders) continue;  // The cheapest on each level: no sum.
          EXPECT_NEAR(cost_of(parts_of(call, choice.algorithm), model), choice.cost_ns, 1e-9 * choice.cost_ns)
              << to_string(call.operation) << " " << to_string(choice.algorithm);
        }
      }
    }
  }
}

}  // namespace
}  // namespace hawser::cli::coll
