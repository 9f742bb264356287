// ngtcp2's own congestion control keeps a stated share of a wire's rate where datagrams are lost, in virtual time.

#include <gtest/gtest.h>
#include <sodium.h>

#include <array>
#include <cstdio>
#include <vector>

#include "backend/quic/test_pair.h"

namespace hawser::backend::quic {
namespace {

constexpr double kMegabitRate = 1e6 / 8 / 1e9;  ///< Bytes in a nanosecond.
constexpr Duration kWayAcross = std::chrono::microseconds(500);

class QuicGoodput : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_GE(sodium_init(), 0);
    if (const auto library = ngtcp2(); !library) GTEST_SKIP() << library.error().to_string();
  }

  /// How much of the wire's rate one stream of `bytes` gets, the start not counted.
  static double share_of(double rate, double lost, Congestion congestion, std::size_t bytes) {
    TestPair pair(41, {.lost = lost, .latency = kWayAcross, .bytes_per_ns = rate}, {.congestion = congestion});
    EXPECT_TRUE(pair.come_up());
    pair.acceptor.connection->trust();
    Flow* const flow = pair.opener.connection->open_flow();
    std::vector<std::byte> some(1 << 20);
    const iovec from = {some.data(), some.size()}, to = from;
    std::size_t written = 0, got = 0;
    Instant began = pair.now();
    std::size_t before = 0;
    EXPECT_TRUE(pair.run(
        [&] {
          written += pair.opener.connection->write(*flow, {&from, 1}, pair.now());
          for (Flow* const opened : pair.acceptor.opened) got += pair.acceptor.connection->read(*opened, {&to, 1});
          if (before == 0 && got > bytes / 4) began = pair.now(), before = got;
          return got >= bytes;
        },
        std::chrono::minutes(10)));
    return static_cast<double>(got - before) / static_cast<double>((pair.now() - began).count()) / rate;
  }

  /// A stream over a wire that loses one datagram in a hundred gets half of what it gets without loss, at least.
  static void expect_half(double rate, Congestion congestion, std::size_t bytes) {
    const double clean = share_of(rate, 0, congestion, bytes), lossy = share_of(rate, 0.01, congestion, bytes);
    std::printf("share of the rate: %.2f clean, %.2f with 1 %% loss\n", clean, lossy);
    EXPECT_GE(clean, 0.8);
    EXPECT_GE(lossy, 0.5 * clean);
  }
};

TEST_F(QuicGoodput, OfAHundredMegabitsOnePercentLossLeavesHalf) {
  expect_half(100 * kMegabitRate, Congestion::kCubic, 16u << 20);
}

TEST_F(QuicGoodput, OfAGigabitOnePercentLossLeavesHalfWithBbr) {
  expect_half(1000 * kMegabitRate, Congestion::kBbr, 64u << 20);
}

}  // namespace
}  // namespace hawser::backend::quic
