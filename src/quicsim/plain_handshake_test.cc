#include "quicsim/plain_handshake.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <array>
#include <vector>

#include "quicsim/run.h"
#include "quicsim/seeded_random.h"

namespace hawser::quicsim {
namespace {

class PlainHandshakeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const Status ready = is_ready(); !ready.ok()) GTEST_SKIP() << ready.to_string();
    handshakes_ = std::make_unique<PlainHandshakes>(**backend::quic::ngtcp2(), random_, tls::PublicKey{}, 100);
    end_ = handshakes_->open_end(tls::End::kOpener).value();
    end_->add_callbacks(table_);
    // A key as ngtcp2 gets one of that end: of an update of nothing.
    std::array<std::uint8_t, 32> secret = {}, next_in, next_out;
    std::array<std::uint8_t, 12> iv_in, iv_out;
    table_.update_key(nullptr, next_in.data(), next_out.data(), &in_, iv_in.data(), &out_, iv_out.data(), secret.data(),
                      secret.data(), secret.size(), nullptr);
  }
  void TearDown() override {
    if (end_ == nullptr) return;
    table_.delete_crypto_aead_ctx(nullptr, &in_, nullptr);
    table_.delete_crypto_aead_ctx(nullptr, &out_, nullptr);
  }
  std::vector<std::uint8_t> seal(const std::vector<std::uint8_t>& plain) const {
    std::vector<std::uint8_t> sealed(plain.size() + kPlainTagBytes);
    EXPECT_EQ(table_.encrypt(sealed.data(), nullptr, &out_, plain.data(), plain.size(), nonce_.data(), nonce_.size(),
                             header_.data(), header_.size()),
              0);
    return sealed;
  }
  int open(const std::vector<std::uint8_t>& sealed) const {
    std::vector<std::uint8_t> plain(sealed.size());
    return table_.decrypt(plain.data(), nullptr, &in_, sealed.data(), sealed.size(), nonce_.data(), nonce_.size(),
                          header_.data(), header_.size());
  }

  SeededRandom random_{1};
  std::unique_ptr<PlainHandshakes> handshakes_;
  std::unique_ptr<backend::quic::HandshakeEnd> end_;
  ngtcp2_callbacks table_ = {};
  ngtcp2_crypto_aead_ctx in_ = {}, out_ = {};
  std::array<std::uint8_t, 12> nonce_ = {1, 2, 3};
  std::array<std::uint8_t, 20> header_ = {4, 5, 6};
};

TEST_F(PlainHandshakeTest, APacketIsTakenAsItWasAndNotOtherwise) {
  const std::vector<std::uint8_t> sealed = seal({1, 2, 3, 4, 5});
  EXPECT_EQ(open(sealed), 0);
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    std::vector<std::uint8_t> changed = sealed;
    changed[i] ^= 1;
    EXPECT_EQ(open(changed), NGTCP2_ERR_DECRYPT) << i;
    EXPECT_EQ(open({sealed.begin(), sealed.begin() + static_cast<std::ptrdiff_t>(i)}), NGTCP2_ERR_DECRYPT) << i;
  }
  header_[0] ^= 1;
  EXPECT_EQ(open(sealed), NGTCP2_ERR_DECRYPT) << "its header";
  header_[0] ^= 1, nonce_[11] ^= 1;
  EXPECT_EQ(open(sealed), NGTCP2_ERR_DECRYPT) << "its number";
  nonce_[11] ^= 1;
  EXPECT_EQ(open(sealed), 0);
}

TEST_F(PlainHandshakeTest, RandomNumbersFollowFromTheSeed) {
  SeededRandom one(7), same(7), other(8);
  std::array<std::uint8_t, 40> a, b, c;
  one.fill(a), same.fill(b), other.fill(c);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
}

}  // namespace
}  // namespace hawser::quicsim
