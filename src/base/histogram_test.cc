#include "base/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"

namespace hawser::base {
namespace {

TEST(Histogram, BucketsCoverEverything) {
  EXPECT_EQ(Histogram::bucket_of(0), 0u);
  EXPECT_EQ(Histogram::bucket_of(7), 7u);
  EXPECT_EQ(Histogram::bucket_of(8), 8u);
  EXPECT_EQ(Histogram::bucket_of(UINT64_MAX), Histogram::kBucketCount - 1);
  EXPECT_EQ(Histogram::bucket_last(Histogram::kBucketCount - 1), UINT64_MAX);
  for (std::size_t bucket = 0; bucket + 1 < Histogram::kBucketCount; ++bucket) {
    const std::uint64_t last = Histogram::bucket_last(bucket);
    ASSERT_EQ(Histogram::bucket_of(last), bucket);
    ASSERT_EQ(Histogram::bucket_of(last + 1), bucket + 1);
  }
}

TEST(Histogram, EmptyAndOneValue) {
  Histogram histogram;
  EXPECT_EQ(histogram.quantile(0.5), 0u);
  EXPECT_EQ(histogram.mean(), 0u);
  histogram.add(1000);
  for (const double p : {-1.0, 0.0, 0.5, 1.0, 2.0}) EXPECT_EQ(histogram.quantile(p), 1000u);
  EXPECT_EQ(histogram.max(), 1000u);
}

TEST(Histogram, QuantilesAreCloseAbove) {
  Rng rng(5);
  Histogram histogram;
  std::vector<std::uint64_t> values;
  for (int i = 0; i < 10'000; ++i) {
    values.push_back(rng.u64() >> rng.below(60));
    histogram.add(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double p : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<std::size_t>(p * 10'000);
    const std::uint64_t exact = values[rank - 1];
    const std::uint64_t estimate = histogram.quantile(p);
    EXPECT_GE(estimate, exact);
    EXPECT_LE(estimate - exact, exact / 8);
  }
}

TEST(Histogram, Merges) {
  Histogram a, b, both;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    (i % 3 == 0 ? a : b).add(i * i);
    both.add(i * i);
  }
  a.merge(b);
  EXPECT_EQ(a.count(), both.count());
  EXPECT_EQ(a.sum(), both.sum());
  EXPECT_EQ(a.max(), both.max());
  EXPECT_EQ(a.quantile(0.5), both.quantile(0.5));
  a.clear();
  EXPECT_EQ(a.count(), 0u);
}

TEST(SharedHistogram, SnapshotsAgree) {
  SharedHistogram shared;
  Histogram plain;
  for (std::uint64_t i = 1; i < 1000; ++i) {
    shared.add(i * 77);
    plain.add(i * 77);
  }
  const Histogram snapshot = shared.snapshot();
  EXPECT_EQ(snapshot.count(), plain.count());
  EXPECT_EQ(snapshot.sum(), plain.sum());
  EXPECT_EQ(snapshot.max(), plain.max());
  EXPECT_EQ(snapshot.quantile(0.99), plain.quantile(0.99));
}

}  // namespace
}  // namespace hawser::base
