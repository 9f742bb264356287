#include "backend/quic/bulk_brake.h"

#include <gtest/gtest.h>

namespace hawser::backend::quic {
namespace {

constexpr std::size_t kBulk = BulkBrake::kSmallMost + 1, kFew = BulkBrake::kBesideFew, kMany = BulkBrake::kBesideMany,
                      kSeldom = BulkBrake::kBesideSeldom;

class BulkBrakeTest : public testing::Test {
 protected:
  void write_small(Instant now) { brake_.note_write(BulkBrake::kSmallMost, messages_, now); }

  const Instant now_ = Instant::from_ns(1'000'000'000);
  Instant bulk_ = Instant::min(), messages_ = Instant::min();
  BulkBrake brake_{true};
};

TEST_F(BulkBrakeTest, LeavesBulkAloneWhereNothingSmallIsAbout) {
  EXPECT_EQ(brake_.room(kBulk, 10 * kFew, now_), SIZE_MAX);
  brake_.note_write(kBulk, bulk_, now_);
  brake_.note_write(1, bulk_, now_ + BulkBrake::kFor - Duration(1));
  EXPECT_EQ(brake_.room(kBulk, 10 * kFew, now_), SIZE_MAX) << "the end of bulk is no message";
}

TEST_F(BulkBrakeTest, BoundsBulkForAWhileAfterASmallWrite) {
  write_small(now_);
  EXPECT_EQ(brake_.room(kBulk, 0, now_), kFew);
  EXPECT_EQ(brake_.room(kBulk, kFew - 1, now_), 1u);
  EXPECT_EQ(brake_.room(kBulk, 10 * kFew, now_), 0u);
  EXPECT_EQ(brake_.room(BulkBrake::kSmallMost, 10 * kFew, now_), SIZE_MAX) << "small ones go";
  EXPECT_EQ(brake_.room(kBulk, kFew, now_ + BulkBrake::kFor - Duration(1)), 0u);
  EXPECT_EQ(brake_.room(kBulk, kSeldom - 1, now_ + BulkBrake::kFor), 1u) << "and a little less for longer";
  EXPECT_EQ(brake_.room(kBulk, kSeldom, now_ + BulkBrake::kSeldomFor - Duration(1)), 0u);
  EXPECT_EQ(brake_.room(kBulk, kSeldom, now_ + BulkBrake::kSeldomFor), SIZE_MAX);
}

TEST_F(BulkBrakeTest, BoundsBulkMoreBesideManySmallWrites) {
  for (int i = 0; i < BulkBrake::kMany; ++i) {
    EXPECT_EQ(brake_.room(kBulk, kMany, now_), i == 0 ? SIZE_MAX : kFew - kMany) << i;
    write_small(now_);
  }
  EXPECT_EQ(brake_.room(kBulk, kMany, now_), 0u);
  EXPECT_EQ(brake_.room(kBulk, kMany, now_ + BulkBrake::kFor), kSeldom - kMany);
}

TEST_F(BulkBrakeTest, OneEachMillisecondIsFew) {
  for (int i = 0; i < 100; ++i) write_small(now_ + i * Duration(std::chrono::milliseconds(1)));
  EXPECT_EQ(brake_.room(kBulk, 0, now_ + Duration(std::chrono::milliseconds(99))), kFew);
}

TEST_F(BulkBrakeTest, ManyAreForgotten) {
  for (int i = 0; i < 1000; ++i) write_small(now_);
  const Instant later = now_ + BulkBrake::kFor;
  write_small(later);
  EXPECT_EQ(brake_.room(kBulk, 0, later), kFew) << "a thousand count for no longer than a few";
}

TEST_F(BulkBrakeTest, HoldsNothingWhereItIsOff) {
  BulkBrake off(false);
  off.note_write(1, messages_, now_);
  EXPECT_EQ(off.room(kBulk, 10 * kFew, now_), SIZE_MAX);
}

}  // namespace
}  // namespace hawser::backend::quic
