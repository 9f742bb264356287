#include "sim/book_judge.h"

#include <gtest/gtest.h>

#include <utility>

#include "agent/open.h"
#include "sim/test_lives.h"

namespace hawser::simulation {
namespace {

struct BookJudgeTest : testing::Test, TwoLives {
  BookJudgeTest() { a.agent = std::move(agent::open_with({.name = "agent-0"}, {}).value()); }
  ~BookJudgeTest() override { a.agent = Agent(); }

  BookJudge judge{verdict};
};

TEST_F(BookJudgeTest, CountersSayWhatWasSeen) {
  judge.check_counters(a);
  EXPECT_FALSE(verdict.failed()) << verdict.failure();
  a.good_writes = 1;
  judge.check_counters(a);
  EXPECT_NE(verdict.failure().find("counters: writes is 0, but 1 were seen"), std::string::npos) << verdict.failure();
}

TEST_F(BookJudgeTest, WithoutPathsAFewWordsAreSilence) {
  judge.check_silent(a, 10, 10);
  EXPECT_FALSE(verdict.failed()) << verdict.failure();
  judge.check_silent(a, 11, 10);
  EXPECT_NE(verdict.failure().find("it sent 11 times by 0 paths within 10 heartbeats"), std::string::npos)
      << verdict.failure();
}

TEST_F(BookJudgeTest, WhoHasNothingToDoWithAnyoneGoesBestAndOwesNothing) {
  BookJudge::Lives lives;
  EXPECT_TRUE(BookJudge::all_go_best(lives));
  EXPECT_TRUE(BookJudge::all_told(lives));
}

}  // namespace
}  // namespace hawser::simulation
