#include "backend/quic/answer_watch.h"

#include <gtest/gtest.h>

#include <chrono>

namespace hawser::backend::quic {
namespace {

using namespace std::chrono_literals;

class AnswerWatchTest : public testing::Test {
 protected:
  bool is_unanswered(Duration after, Duration timeout = 10ms) {
    watch_.look(start_ + after, timeout, 1s);
    return watch_.is_unanswered();
  }

  const Instant start_ = Instant::from_ns(0) + 1h;
  AnswerWatch watch_;
};

TEST_F(AnswerWatchTest, WhoAsksNothingMissesNothing) { EXPECT_FALSE(is_unanswered(1h)); }

TEST_F(AnswerWatchTest, TwoTimeoutsWithoutAnAnswerAreNone) {
  watch_.note_asked(start_);
  watch_.note_asked(start_ + 15ms);
  EXPECT_FALSE(is_unanswered(19ms));
  EXPECT_TRUE(is_unanswered(20ms)) << "since the first question";
  watch_.note_heard();
  EXPECT_FALSE(watch_.is_unanswered());
  EXPECT_FALSE(is_unanswered(1h));
}

TEST_F(AnswerWatchTest, AQuarterOfTheIdleTimeoutIsEnough) {
  watch_.note_asked(start_);
  EXPECT_FALSE(is_unanswered(249ms, 10s));
  EXPECT_TRUE(is_unanswered(250ms, 10s));
}

}  // namespace
}  // namespace hawser::backend::quic
