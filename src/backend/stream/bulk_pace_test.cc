#include "backend/stream/bulk_pace.h"

#include <gtest/gtest.h>

namespace hawser::backend::stream {
namespace {

constexpr std::uint64_t kMost = 1 << 20;
constexpr Duration kTick = std::chrono::nanoseconds(1);

TEST(BulkPace, MovesMuchWhereNothingSmallIsAbout) {
  const BulkPace pace;
  const Share share = pace.share(Instant::from_ns(1), kMost);
  EXPECT_EQ(share.step, kMost);
  EXPECT_EQ(share.left, 2 * kMost);
}

const Instant kAt = Instant::from_ns(1'000'000'000);

/// `count` small operations at once beside bulk.
BulkPace paced(std::int64_t count) {
  BulkPace pace;
  pace.note_bulk(kAt);
  for (std::int64_t i = 0; i < count; ++i) pace.note_small(kAt);
  return pace;
}

TEST(BulkPace, GoesBackByStages) {
  const BulkPace pace = paced(BulkPace::kManySmall);
  EXPECT_EQ(pace.share(kAt + BulkPace::kSmallFor - kTick, kMost).step, BulkPace::kSmallStep);
  EXPECT_EQ(pace.share(kAt + BulkPace::kSmallFor, kMost).step, BulkPace::kMiddleStep);
  EXPECT_EQ(pace.share(kAt + BulkPace::kMiddleFor - kTick, kMost).step, BulkPace::kMiddleStep);
  EXPECT_EQ(pace.share(kAt + BulkPace::kMiddleFor, kMost).step, kMost);
  EXPECT_EQ(pace.share(kAt, kMost).left, 2 * BulkPace::kSmallStep);
}

TEST(BulkPace, AFewSmallOperationsHaveMiddleSteps) {
  EXPECT_EQ(paced(BulkPace::kManySmall - 1).share(kAt, kMost).step, BulkPace::kMiddleStep);
  EXPECT_EQ(paced(BulkPace::kManySmall).share(kAt, kMost).step, BulkPace::kSmallStep);
}

TEST(BulkPace, SmallOperationsAreForgottenOneByOne) {
  // One in each kForgetOne is never many, and a little more often they are in the end.
  for (const bool is_often : {false, true}) {
    BulkPace pace;
    Instant at = kAt;
    for (std::int64_t i = 0; i < 100 * BulkPace::kManySmall; ++i) {
      pace.note_bulk(at);
      pace.note_small(at);
      if (i + 1 < 100 * BulkPace::kManySmall)
        at = at + BulkPace::kForgetOne - (is_often ? BulkPace::kForgetOne / 50 : Duration(0));
    }
    EXPECT_EQ(pace.share(at, kMost).step, is_often ? BulkPace::kSmallStep : BulkPace::kMiddleStep);
  }
}

TEST(BulkPace, ABurstIsForgottenAfterItsTime) {
  BulkPace pace = paced(1000 * BulkPace::kManySmall);
  const Instant later = kAt + BulkPace::kManySmall * BulkPace::kForgetOne + BulkPace::kMiddleFor;
  pace.note_bulk(later);
  pace.note_small(later);
  EXPECT_EQ(pace.share(later, kMost).step, BulkPace::kMiddleStep);
}

TEST(BulkPace, ASmallOperationWithoutBulkChangesNothing) {
  for (const Duration since : {BulkPace::kBesideFor - kTick, BulkPace::kBesideFor}) {
    BulkPace pace;
    pace.note_small(kAt);
    EXPECT_EQ(pace.share(kAt, kMost).step, kMost) << "there was never any bulk";
    pace.note_bulk(kAt);
    pace.note_small(kAt + since);
    EXPECT_EQ(pace.share(kAt + since, kMost).step, since < BulkPace::kBesideFor ? BulkPace::kMiddleStep : kMost);
  }
}

}  // namespace
}  // namespace hawser::backend::stream
