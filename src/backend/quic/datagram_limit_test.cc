#include "backend/quic/datagram_limit.h"

#include <gtest/gtest.h>

#include <chrono>

namespace hawser::backend::quic {
namespace {

using namespace std::chrono_literals;

constexpr Instant kLimitStart = Instant::from_ns(3'600'000'000'000);

TEST(DatagramLimit, SmallOnesGoWhereLargeOnesAreMissedUntilTheyAreTriedAgain) {
  DatagramLimit limit(1452);
  EXPECT_EQ(limit.bytes(kLimitStart), 1452u);
  limit.note_missed(kLimitStart);
  EXPECT_EQ(limit.bytes(kLimitStart), DatagramLimit::kLeast);
  EXPECT_EQ(limit.bytes(kLimitStart + DatagramLimit::kRaiseAfter - 1ns), DatagramLimit::kLeast);
  EXPECT_EQ(limit.bytes(kLimitStart + DatagramLimit::kRaiseAfter), 1452u);
}

TEST(DatagramLimit, WhereSmallOnesDoNoBetterItWasNotTheSize) {
  DatagramLimit limit(16384);
  limit.note_missed(kLimitStart);
  limit.note_missed(kLimitStart + 1s);
  EXPECT_EQ(limit.bytes(kLimitStart + 1s), 16384u);
  limit.note_missed(kLimitStart + 2s);
  EXPECT_EQ(limit.bytes(kLimitStart + 2s), DatagramLimit::kLeast);
}

TEST(DatagramLimit, AnotherRouteMayTakeLargeOnes) {
  DatagramLimit limit(1452);
  limit.note_missed(kLimitStart);
  limit.note_moved();
  EXPECT_EQ(limit.bytes(kLimitStart + 1s), 1452u);
}

TEST(DatagramLimit, WhatIsSmallAlreadyStays) {
  DatagramLimit limit(1200);
  limit.note_missed(kLimitStart);
  EXPECT_EQ(limit.bytes(kLimitStart), 1200u);
}

}  // namespace
}  // namespace hawser::backend::quic
