#include "backend/quic/ack_watch.h"

#include <gtest/gtest.h>

#include <chrono>

namespace hawser::backend::quic {
namespace {

using namespace std::chrono_literals;

class AckWatchTest : public testing::Test {
 protected:
  bool hear(Duration after) { return watch_.note_heard(start_ + after, 10ms); }

  const Instant start_ = Instant::from_ns(0) + 1h;
  AckWatch watch_;
};

TEST_F(AckWatchTest, WhatIsNotAcknowledgedIsMissedAtTheThirdDatagramAfterSevenTimeouts) {
  watch_.note_sent(start_, 10ms);
  EXPECT_FALSE(hear(69ms));
  EXPECT_FALSE(hear(70ms));
  EXPECT_FALSE(hear(79ms)) << "the peer was heard a moment before";
  EXPECT_FALSE(hear(80ms));
  EXPECT_TRUE(hear(90ms));
  EXPECT_FALSE(hear(100ms));
  EXPECT_FALSE(hear(110ms));
  EXPECT_TRUE(hear(120ms)) << "again at each third one";
}

TEST_F(AckWatchTest, APeerThatSaysNothingMissesNothing) {
  watch_.note_sent(start_, 10ms);
  EXPECT_FALSE(hear(1h)) << "it was stopped, and has not read all yet";
  EXPECT_EQ(watch_.waited(start_ + 1h), 1h);
}

TEST_F(AckWatchTest, AnAcknowledgementBeginsItAnew) {
  watch_.note_sent(start_, 10ms);
  watch_.note_sent(start_ + 50ms, 10ms);
  EXPECT_EQ(watch_.waited(start_ + 60ms), 60ms) << "since the first one";
  EXPECT_FALSE(hear(70ms));
  EXPECT_FALSE(hear(80ms));
  watch_.note_settled();
  EXPECT_EQ(watch_.waited(start_ + 90ms), Duration::zero());
  EXPECT_FALSE(hear(90ms));
  watch_.note_sent(start_ + 90ms, 10ms);
  for (const Duration at : {100ms, 110ms, 120ms, 150ms}) EXPECT_FALSE(hear(at));
  EXPECT_EQ(watch_.waited(start_ + 150ms), 60ms);
}

}  // namespace
}  // namespace hawser::backend::quic
