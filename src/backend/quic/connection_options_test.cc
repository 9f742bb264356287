#include "backend/quic/connection_options.h"

#include <gtest/gtest.h>

#include <chrono>

namespace hawser::backend::quic {
namespace {

using namespace std::chrono_literals;

class ConnectionOptionsTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto opened = ngtcp2();
    if (!opened) GTEST_SKIP() << opened.error().to_string();
    library_ = *opened;
  }
  ngtcp2_settings settings(const ConnectionOptions& options) const {
    return settings_of(options, *library_, secure_random(), Instant::from_ns(0) + 1h);
  }

  const Ngtcp2* library_ = nullptr;
};

TEST_F(ConnectionOptionsTest, AnAcceptorLetsItsPeerSendLittleAndOpenStreams) {
  const ngtcp2_transport_params opener = params_of({}, *library_, true), acceptor = params_of({}, *library_, false);
  EXPECT_EQ(opener.initial_max_streams_bidi, 0u);
  EXPECT_EQ(acceptor.initial_max_streams_bidi, kStreamsPerConnection);
  EXPECT_EQ(acceptor.initial_max_streams_uni + opener.initial_max_streams_uni, 0u);
  EXPECT_EQ(acceptor.initial_max_stream_data_bidi_remote, first_window(false));
  EXPECT_EQ(acceptor.initial_max_data, 4 * first_window(false));
  EXPECT_LT(acceptor.initial_max_data, opener.initial_max_data);
}

TEST_F(ConnectionOptionsTest, TimesAreNanoseconds) {
  const ConnectionOptions options = {.handshake_timeout = 3s, .idle_timeout = 7s};
  EXPECT_EQ(settings(options).handshake_timeout, 3'000'000'000u);
  EXPECT_EQ(settings(options).initial_ts, 3'600'000'000'000u);
  EXPECT_EQ(params_of(options, *library_, true).max_idle_timeout, 7'000'000'000u);
}

TEST_F(ConnectionOptionsTest, DatagramsThatAreNotProbedHaveTheirSizeAtOnce) {
  const ngtcp2_settings fixed = settings({.congestion = Congestion::kBbr, .datagram_max = 32752, .is_probed = false});
  EXPECT_EQ(fixed.max_tx_udp_payload_size, 32752u);
  EXPECT_NE(fixed.no_tx_udp_payload_size_shaping, 0);
  EXPECT_EQ(fixed.cc_algo, NGTCP2_CC_ALGO_BBR);
  EXPECT_EQ(settings({}).no_tx_udp_payload_size_shaping, 0);
  EXPECT_EQ(settings({}).cc_algo, NGTCP2_CC_ALGO_CUBIC);
  EXPECT_EQ(settings({.congestion = Congestion::kReno}).cc_algo, NGTCP2_CC_ALGO_RENO);
}

TEST_F(ConnectionOptionsTest, Ngtcp2WidensNoStreamsWindow) {
  EXPECT_EQ(settings({.window = 1 << 20}).max_window, 1u << 20);
  EXPECT_EQ(settings({}).max_stream_window, 0u);
}

}  // namespace
}  // namespace hawser::backend::quic
