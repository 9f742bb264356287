#include "quicsim/run.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "quicsim/batch.h"

namespace hawser::quicsim {
namespace {

class QuicRun : public testing::Test {
 protected:
  void SetUp() override {
    if (const Status ready = is_ready(); !ready.ok()) GTEST_SKIP() << ready.to_string();
  }
};

TEST_F(QuicRun, TheSameSeedTakesTheSameCourse) {
  std::vector<std::string> first, second;
  RunOptions options{.seed = 5, .trace = [&](Instant, std::string_view line) { first.emplace_back(line); }};
  const auto one = quicsim::run_seed(options);
  options.trace = [&](Instant, std::string_view line) { second.emplace_back(line); };
  const auto two = quicsim::run_seed(options);
  EXPECT_TRUE(one.ok) << one.failure;
  EXPECT_GT(first.size(), 100u);
  EXPECT_EQ(first, second);
  EXPECT_EQ(one.hash, two.hash);
  options.trace = {};
  EXPECT_EQ(quicsim::run_seed(options).hash, one.hash) << "a trace changes nothing";
  options.seed = 6;
  EXPECT_NE(quicsim::run_seed(options).hash, one.hash);
}

TEST_F(QuicRun, SeedsDoSomething) {
  const Batch batch = quicsim::run_batch({.first = 1, .count = 32});
  for (const auto& [seed, failure] : batch.failed) ADD_FAILURE() << seed << ": " << failure;
  EXPECT_GT(batch.sum.connections, 32u);
  EXPECT_GT(batch.sum.streams, 100u);
  EXPECT_GT(batch.sum.bytes, 1'000'000u);
  EXPECT_GT(batch.sum.faults, 20u);
  EXPECT_EQ(replay_command(9, sim::Mode::kStream), "hawser sim --what quic --seed 9 --trace");
}

}  // namespace
}  // namespace hawser::quicsim
