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

// A probe of unknown versions costs its sender nothing, and its answer may go to somebody else.
TEST_F(QuicNetworkTest, ProbesWithoutEndGetNoMoreAnswersThanTheBudgetHas) {
  constexpr std::uint32_t kProbes = 2 * AnswerBudget::kBurst;
  std::vector<std::byte> probe(1200);
  probe[0] = std::byte{0xc0};
  for (std::size_t i = 1; i <= 4; ++i) probe[i] = std::byte{0x1a};  // A version that nobody has.
  probe[5] = probe[14] = std::byte{8};                              // Sizes of two ids.
  const auto asker = UdpSocket::connect(base::numeric_address(base::parse_host_port(acceptor_.place).value()).value(),
                                        {}, std::make_shared<FdLedger>())
                         .value();
  std::vector<std::byte> buffer(kReceiveBytesMax);
  std::uint32_t answers = 0;
  const Instant began = Clock::steady().now();
  for (std::uint32_t i = 0; i < kProbes; ++i) {
    ASSERT_TRUE(asker->send(asker->route(), probe, probe.size()));
    acceptor_.turn();
    if (i % 16 != 15) continue;
    for (auto got = asker->receive(buffer).value(); !got.is_all; got = asker->receive(buffer).value()) {
      answers += static_cast<std::uint32_t>((got.bytes.size() + got.segment - 1) / got.segment);
    }
  }
  const double took = std::chrono::duration<double>(Clock::steady().now() - began).count();
  EXPECT_GE(answers, AnswerBudget::kBurst / 2) << "they are answered at first";
  EXPECT_LE(answers, AnswerBudget::kBurst + static_cast<std::uint32_t>(took * AnswerBudget::kPerSecond) + 1);
  EXPECT_GT(acceptor_.network->unanswered(), 0u);
  const auto streams = connect(1);
  EXPECT_TRUE(turn_until([&] { return count_open(streams) == 1; }, std::chrono::seconds(8)))
      << "who has the card comes in meanwhile";
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
