#include "backend/quic/bulk_brake.h"

#include <gtest/gtest.h>

namespace hawser::backend::quic {
namespace {

constexpr std::size_t kBulk = BulkBrake::kSmallMost + 1, kMost = BulkBrake::kUnderWayMost;

TEST(BulkBrake, HoldsBulkBehindItsBoundForAWhileAfterASmallWrite) {
  BulkBrake brake(true);
  const Instant now = Instant::from_ns(1'000'000'000);
  EXPECT_FALSE(brake.holds(kBulk, 10 * kMost, now)) << "nothing small is about";
  Instant bulk = Instant::min(), messages = Instant::min();
  brake.note_write(kBulk, bulk, now);
  EXPECT_FALSE(brake.holds(kBulk, 10 * kMost, now));
  brake.note_write(1, bulk, now + BulkBrake::kFor - Duration(1));
  EXPECT_FALSE(brake.holds(kBulk, 10 * kMost, now)) << "the end of bulk is no message";
  brake.note_write(BulkBrake::kSmallMost, messages, now);
  EXPECT_TRUE(brake.holds(kBulk, kMost, now));
  EXPECT_FALSE(brake.holds(kBulk, kMost - 1, now));
  EXPECT_FALSE(brake.holds(BulkBrake::kSmallMost, 10 * kMost, now)) << "small ones go";
  EXPECT_TRUE(brake.holds(kBulk, kMost, now + BulkBrake::kFor - Duration(1)));
  EXPECT_FALSE(brake.holds(kBulk, kMost, now + BulkBrake::kFor));
}

TEST(BulkBrake, HoldsNothingWhereItIsOff) {
  BulkBrake brake(false);
  const Instant now = Instant::from_ns(1'000'000'000);
  Instant messages = Instant::min();
  brake.note_write(1, messages, now);
  EXPECT_FALSE(brake.holds(kBulk, 10 * kMost, now));
}

}  // namespace
}  // namespace hawser::backend::quic
