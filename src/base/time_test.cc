#include <hawser/time.h>

#include <gtest/gtest.h>

namespace hawser {
namespace {

using namespace std::chrono_literals;

TEST(Instant, Saturates) {
  const Instant zero = Instant::from_ns(0);
  EXPECT_EQ(zero + Duration::max(), Instant::max());
  EXPECT_EQ(Instant::from_ns(1) + Duration::max(), Instant::max());
  EXPECT_EQ(Instant::from_ns(-2) + Duration::min(), Instant::min());
  EXPECT_EQ(Instant::from_ns(-2) - Duration::max(), Instant::min());
  EXPECT_EQ(zero - Duration::min(), Instant::max());
  EXPECT_EQ((Instant::from_ns(-5) - Duration::min()).ns(), INT64_MAX - 4);
  EXPECT_EQ(Instant::max() - Instant::min(), Duration::max());
  EXPECT_EQ(Instant::min() - Instant::max(), Duration::min());
}

TEST(Instant, Counts) {
  const Instant at = Instant::from_ns(5) + 10ns;
  EXPECT_EQ(at.ns(), 15);
  EXPECT_EQ((at - 20ns).ns(), -5);
  EXPECT_EQ(at - Instant::from_ns(5), 10ns);
  EXPECT_LT(at, Instant::max());
}

TEST(Clock, SteadyDoesNotGoBack) {
  const Instant a = Clock::steady().now();
  const Instant b = Clock::steady().now();
  EXPECT_LE(a, b);
  EXPECT_GT(a.ns(), 0);
}

}  // namespace
}  // namespace hawser
