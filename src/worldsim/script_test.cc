#include "worldsim/script.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace hawser::worldsim {
namespace {

template <typename T>
T at(const std::vector<std::byte>& bytes, std::size_t index) {
  T value{};
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

TEST(ScriptTest, AllReduceIsTheSumOfWhatTheRanksGive) {
  Act act{.what = schedule::Operation::kAllReduce,
          .type = DataType::kInt32,
          .op = ReduceOp::kSum,
          .size = 3,
          .count = 5,
          .counts = {},
          .seed = 7};
  for (std::size_t i = 0; i < 5; ++i) {
    std::int32_t sum = 0;
    for (std::uint32_t rank = 0; rank < 3; ++rank) sum += at<std::int32_t>(input_of(act, rank), i);
    EXPECT_EQ(at<std::int32_t>(output_of(act, 1), i), sum);
  }
  act.what = schedule::Operation::kExclusiveScan;
  EXPECT_EQ(output_of(act, 0), input_of(act, 0));
  EXPECT_EQ(output_of(act, 1), input_of(act, 0));
}

TEST(ScriptTest, AnExchangeGivesEachRankItsBlocks) {
  const Act act{.what = schedule::Operation::kAllToAll,
                .type = DataType::kUInt8,
                .op = {},
                .size = 3,
                .counts = {2, 4, 6},
                .seed = 7};
  const std::vector<std::byte> out = output_of(act, 2);
  EXPECT_EQ(out.size(), output_count(act, 2));
  const std::vector<std::byte> of_one = input_of(act, 1);  // 3 for rank 0, 4 for itself, 5 for rank 2.
  ASSERT_EQ(of_one.size(), 12U);
  EXPECT_TRUE(std::equal(of_one.begin() + 7, of_one.end(), out.begin() + 4));
}

TEST(ScriptTest, ScriptsHaveAllOperationsAndEndWithBarriers) {
  std::set<schedule::Operation> seen;
  for (std::uint64_t number = 1; number <= 300; ++number) {
    const Act act = act_of(1, number, 300, 4);
    seen.insert(act.what);
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(input_of(act, rank).size(), input_count(act, rank) * size_of(act.type));
      EXPECT_EQ(output_of(act, rank).size(), output_count(act, rank) * size_of(act.type)) << describe(act);
    }
    if (act.op) {
      EXPECT_TRUE(is_accepted(act.type, *act.op));
    }
    EXPECT_NE(describe(misfit_of(act)), describe(act));
  }
  EXPECT_EQ(seen.size(), 11U);
  EXPECT_EQ(act_of(1, 0, 300, 4).what, schedule::Operation::kBarrier);
  EXPECT_EQ(act_of(1, 301, 300, 4).what, schedule::Operation::kBarrier);
}

}  // namespace
}  // namespace hawser::worldsim
