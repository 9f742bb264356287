#include "metrics/exposition.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <utility>

namespace hawser::metrics {
namespace {

TEST(Exposition, FamiliesStandByNameWithTheirSamplesTogether) {
  Exposition to;
  to.gauge("b_level", "How high", {}, 2.5);
  to.counter("a_total", "How many", {{"peer", "x"}, {"way", "out"}}, 3);
  to.gauge("b_level", "", {{"peer", "y"}}, -1);
  to.counter("a_total", "", {{"peer", "y"}, {"way", "out"}}, 0);
  EXPECT_EQ(to.text(),
            "# HELP a_total How many\n"
            "# TYPE a_total counter\n"
            "a_total{peer=\"x\",way=\"out\"} 3\n"
            "a_total{peer=\"y\",way=\"out\"} 0\n"
            "# HELP b_level How high\n"
            "# TYPE b_level gauge\n"
            "b_level 2.5\n"
            "b_level{peer=\"y\"} -1\n");
}

TEST(Exposition, AHistogramHasItsBucketsItsSumAndItsCount) {
  Exposition to;
  const std::array<Label, 1> labels{Label{"peer", "x"}};
  const std::array<Bucket, 2> buckets{Bucket{0.001, 4}, Bucket{0.5, 6}};
  to.histogram("took_seconds", "How long", labels, buckets, 7, 1.25);
  EXPECT_EQ(to.text(),
            "# HELP took_seconds How long\n"
            "# TYPE took_seconds histogram\n"
            "took_seconds_bucket{peer=\"x\",le=\"0.001\"} 4\n"
            "took_seconds_bucket{peer=\"x\",le=\"0.5\"} 6\n"
            "took_seconds_bucket{peer=\"x\",le=\"+Inf\"} 7\n"
            "took_seconds_sum{peer=\"x\"} 1.25\n"
            "took_seconds_count{peer=\"x\"} 7\n");
}

TEST(Exposition, AHistogramWithoutLabelsHasItsBoundsAlone) {
  Exposition to;
  to.histogram("took_seconds", "How long", {}, std::array<Bucket, 1>{Bucket{1, 1}}, 2, 3);
  EXPECT_NE(to.text().find("took_seconds_bucket{le=\"1\"} 1\n"), std::string::npos) << to.text();
  EXPECT_NE(to.text().find("took_seconds_count 2\n"), std::string::npos) << to.text();
}

TEST(Exposition, OneSeriesIsToldOnceAndIsTheSum) {
  Exposition to;
  for (int i = 0; i < 2; ++i) {
    to.counter("a_total", "How many", {{"agent", "same name"}}, std::numeric_limits<std::uint64_t>::max() / 2);
    to.gauge("b", "Level", {}, 1.5);
  }
  EXPECT_NE(to.text().find("a_total{agent=\"same name\"} 18446744073709551614\n"), std::string::npos) << to.text();
  EXPECT_NE(to.text().find("b 3\n"), std::string::npos) << to.text();
}

TEST(Exposition, DrainedPieceByPieceItIsTheSameText) {
  for (const std::size_t about : {1u, 100u, 1'000'000u}) {
    Exposition to;
    for (const char* const peer : {"x", "y", "z"}) {
      to.counter("a_total", "How many", {{"peer", peer}}, 3);
      to.gauge("b", "Level", {{"peer", peer}}, 1.5);
    }
    const std::string all = to.text();
    std::string drained, piece;
    int pieces = 0;
    for (bool more = true; more; ++pieces, drained += std::exchange(piece, {})) {
      more = to.drain(piece, about);
      EXPECT_LE(piece.size(), about + 200) << "a piece ends with the line that fills it";
    }
    EXPECT_EQ(drained, all);
    EXPECT_GE(pieces, about < 1000 ? 2 : 1);
    EXPECT_EQ(to.text(), "");
  }
}

TEST(Exposition, NamesOfPeersCannotWriteSamples) {
  Exposition to;
  to.counter("a_total", "help with \\ and \n line", {{"peer", "x\"} 1\nfake_total{p=\"\\"}}, 1);
  EXPECT_EQ(to.text(),
            "# HELP a_total help with \\\\ and \\n line\n"
            "# TYPE a_total counter\n"
            "a_total{peer=\"x\\\"} 1\\\\x0afake_total{p=\\\"\\\\\"} 1\n");
}

}  // namespace
}  // namespace hawser::metrics
