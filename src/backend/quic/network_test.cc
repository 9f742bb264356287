#include "backend/quic/network.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace hawser::backend::quic {
namespace {

using stream::StreamState;

/// Two networks on loopback, each turned by the test.
class QuicNetworkTest : public testing::Test {
 protected:
  struct End {
    tls::KeyPair keys = tls::KeyPair::make();
    base::Id128 secret = base::random_id128();
    std::unique_ptr<QuicNetwork> network;
    std::string place;
    stream::Known known() const { return {.secret = secret, .key = keys.public_key()}; }
    void turn() {
      std::array<stream::Readiness, 64> news;
      bool acceptable = false;
      static_cast<void>(network->ready(news, &acceptable));
    }
  };

  void SetUp() override {
    ASSERT_GE(sodium_init(), 0);
    if (const auto library = ngtcp2(); !library) GTEST_SKIP() << library.error().to_string();
    for (End* end : {&opener_, &acceptor_}) {
      const auto ledger = std::make_shared<FdLedger>();
      const QuicOptions options = read_quic_options({{"listen", "127.0.0.1"}}, Security::kDefault).value();
      QuicListeners listeners = quic_listen(options, ledger).value();
      end->place = base::to_string(listeners.locator.places.front());
      end->network = QuicNetwork::open(options, ledger, std::move(listeners), TlsCredentials::make(end->keys).value(),
                                       {.secret = end->secret, .key = end->keys.public_key()})
                         .value();
    }
  }
  /// Each has a connection of its own if none is up yet.
  std::vector<std::unique_ptr<stream::Stream>> connect(std::size_t count) {
    std::vector<std::unique_ptr<stream::Stream>> streams;
    for (std::size_t i = 0; i < count; ++i) {
      streams.push_back(opener_.network->connect(acceptor_.place, acceptor_.known()).value());
    }
    return streams;
  }
  bool turn_until(const std::function<bool()>& done, Duration patience) {
    const Instant until = Clock::steady().now() + patience;
    while (!done() && Clock::steady().now() < until) opener_.turn(), acceptor_.turn();
    return done();
  }
  static std::size_t count_open(const std::vector<std::unique_ptr<stream::Stream>>& streams) {
    return static_cast<std::size_t>(
        std::ranges::count_if(streams, [](const auto& each) { return each->state() == StreamState::kOpen; }));
  }

  End opener_, acceptor_;
};

TEST_F(QuicNetworkTest, NoMoreThanSoManyAreHeldWhoHaveProvenNothing) {
  const auto streams = connect(QuicNetwork::kStrangersMax + 1);
  EXPECT_TRUE(turn_until([&] { return count_open(streams) == QuicNetwork::kStrangersMax; }, std::chrono::seconds(8)))
      << count_open(streams);
  turn_until([] { return false; }, std::chrono::milliseconds(300));
  EXPECT_EQ(count_open(streams), QuicNetwork::kStrangersMax) << "one more than the bound came in";
}

TEST_F(QuicNetworkTest, AnotherSecretComesToNothing) {
  stream::Known wrong = acceptor_.known();
  wrong.secret = base::random_id128();
  const auto stream = opener_.network->connect(acceptor_.place, wrong).value();
  turn_until([] { return false; }, std::chrono::milliseconds(300));
  EXPECT_EQ(stream->state(), StreamState::kConnecting);
}

TEST_F(QuicNetworkTest, WithoutACardNothingIsSaid) {
  const auto stream = opener_.network->connect(acceptor_.place, {});
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().code(), Code::kDenied);
}

TEST_F(QuicNetworkTest, FurtherStreamsShareTheConnectionUntilOneHasGone) {
  const auto first = connect(1);
  ASSERT_TRUE(turn_until([&] { return count_open(first) == 1; }, std::chrono::seconds(8)));
  auto second = connect(1);
  EXPECT_EQ(count_open(second), 1u) << "it needs no handshake";
  EXPECT_EQ(second[0]->binding().size(), 32u);
  EXPECT_FALSE(std::ranges::equal(first[0]->binding(), second[0]->binding()));
  second[0]->close(true);
  const auto third = connect(1);
  EXPECT_EQ(third[0]->state(), StreamState::kConnecting);
}

}  // namespace
}  // namespace hawser::backend::quic
