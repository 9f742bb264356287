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

TEST(BulkPace, GoesBackByStages) {
  BulkPace pace;
  const Instant at = Instant::from_ns(1'000'000'000);
  pace.note_small(at);
  EXPECT_EQ(pace.share(at + BulkPace::kSmallFor - kTick, kMost).step, BulkPace::kSmallStep);
  EXPECT_EQ(pace.share(at + BulkPace::kSmallFor, kMost).step, BulkPace::kMiddleStep);
  EXPECT_EQ(pace.share(at + BulkPace::kMiddleFor - kTick, kMost).step, BulkPace::kMiddleStep);
  EXPECT_EQ(pace.share(at + BulkPace::kMiddleFor, kMost).step, kMost);
  EXPECT_EQ(pace.share(at, kMost).left, 2 * BulkPace::kSmallStep);
}

}  // namespace
}  // namespace hawser::backend::stream
