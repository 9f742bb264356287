// How thousands of ranks compare with what no implementation could do better.

#include "worldsim/scale.h"

#include <gtest/gtest.h>

#include <vector>

#include "worldsim/virtual_links.h"

namespace hawser::worldsim {
namespace {

using What = schedule::Operation;

constexpr std::uint32_t kMany = 4096;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

TEST(VirtualLinks, AMessageTakesItsTimeAndItsPorts) {
  VirtualLinks links(3, {.message_ns = 1000, .byte_ns = 1});
  std::vector<double> came;
  const auto note = [&] { came.push_back(links.now()); };
  EXPECT_EQ(links.send(0, 1, 100, note), 1100);
  EXPECT_EQ(links.send(0, 2, 0, note), 2100) << "one after the other";
  links.send(2, 1, 100, note);  // Both come to rank 1 at once: one after the other.
  links.run();
  EXPECT_EQ(came, (std::vector<double>{1100, 2100, 2200}));
  EXPECT_EQ(links.messages(), 3U);
}

TEST(Scale, AllReduceAndBarrierAreNearTheirBounds) {
  const schedule::CostModel model;
  for (const std::uint32_t ranks : {2U, 3U, 64U, 1000U, kMany}) {
    SCOPED_TRACE(ranks);
    const ScaleRow barrier = run_at_scale(What::kBarrier, ranks, 0, model);
    EXPECT_GE(barrier.ratio(), 1);
    EXPECT_LE(barrier.ratio(), 1.2);
    const ScaleRow large = run_at_scale(What::kAllReduce, ranks, kGiB, model);
    EXPECT_GE(large.ratio(), 1);
    EXPECT_LE(large.ratio(), 1.2);
  }
  const ScaleRow small = run_at_scale(What::kAllReduce, kMany, 8, model);
  EXPECT_GE(small.ratio(), 1);
  EXPECT_LE(small.ratio(), 1.2);
}

TEST(Scale, ShrinkTakesFourMessagesOfEachRankAtTheLeader) {
  const schedule::CostModel model;
  const ScaleRow few = shrink_at_scale(16, model), many = shrink_at_scale(kMany, model);
  EXPECT_EQ(few.messages, 4U * 14);
  EXPECT_EQ(many.messages, 4U * (kMany - 2));
  EXPECT_GE(few.ratio(), 1);
  // Its time is the leader's ports, which all messages pass.
  EXPECT_LE(many.time_ns, 4 * (model.message_ns + kMany * (model.message_ns + 2 * kMany / 8 * model.byte_ns)));
}

TEST(Scale, RowsOfTheCommand) {
  const std::vector<ScaleRow> rows = run_scale(100);
  ASSERT_EQ(rows.size(), 8U);
  for (const ScaleRow& row : rows) EXPECT_GE(row.ratio(), 0.999) << row.operation << " " << row.bytes;
}

}  // namespace
}  // namespace hawser::worldsim
