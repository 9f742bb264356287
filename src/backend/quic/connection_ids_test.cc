#include "backend/quic/connection_ids.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <algorithm>
#include <vector>

namespace hawser::backend::quic {
namespace {

std::span<const std::uint8_t> bytes_of(const ngtcp2_cid& id) { return {id.data, id.datalen}; }

class ConnectionIdsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_GE(sodium_init(), 0);
    if (const auto library = ngtcp2(); !library) GTEST_SKIP() << library.error().to_string();
  }
  /// A datagram of an established connection, of that size.
  static std::vector<std::byte> datagram(const ngtcp2_cid& id, std::size_t size) {
    std::vector<std::byte> bytes(size, std::byte{0x5a});
    std::ranges::copy(std::as_bytes(bytes_of(id)), bytes.begin() + 1);
    return bytes;
  }
  static std::size_t answered(const ConnectionIds& ids, std::span<const std::byte> datagram) {
    std::array<std::byte, 100> room;
    return ids.answer(**ngtcp2(), datagram, room);
  }
};

/// 1, 2, 3, ...
class Counting final : public RandomSource {
 public:
  void fill(std::span<std::uint8_t> bytes) override {
    for (std::uint8_t& byte : bytes) byte = ++last_;
  }

 private:
  std::uint8_t last_ = 0;
};

TEST_F(ConnectionIdsTest, AllOfThemFollowsFromTheRandomSource) {
  Counting one, two;
  const ConnectionIds ids(one), same(two);
  const ngtcp2_cid id = ids.make(), again = same.make();
  EXPECT_TRUE(std::ranges::equal(bytes_of(id), bytes_of(again)));
  EXPECT_EQ(ids.token(bytes_of(id)), same.token(bytes_of(id)));
  EXPECT_TRUE(same.is_own(bytes_of(id)));
}

TEST_F(ConnectionIdsTest, AreItsOwnAndNoTwoAlike) {
  const ConnectionIds ids(secure_random()), others(secure_random());
  const ngtcp2_cid one = ids.make(), two = ids.make();
  EXPECT_FALSE(std::ranges::equal(bytes_of(one), bytes_of(two)));
  EXPECT_TRUE(ids.is_own(bytes_of(one)));
  EXPECT_FALSE(others.is_own(bytes_of(one)));
  EXPECT_FALSE(ids.is_own(bytes_of(one).first(kIdBytes - 1)));
  for (std::size_t i = 0; i < kIdBytes; ++i) {
    ngtcp2_cid changed = one;
    changed.data[i] ^= 1;
    EXPECT_FALSE(ids.is_own(bytes_of(changed))) << i;
  }
}

TEST_F(ConnectionIdsTest, ATokenIsOfOneIdAndOneAcceptor) {
  const ConnectionIds ids(secure_random()), others(secure_random());
  const ngtcp2_cid one = ids.make(), two = ids.make();
  EXPECT_EQ(ids.token(bytes_of(one)), ids.token(bytes_of(one)));
  EXPECT_NE(ids.token(bytes_of(one)), ids.token(bytes_of(two)));
  EXPECT_NE(ids.token(bytes_of(one)), others.token(bytes_of(one)));
}

TEST_F(ConnectionIdsTest, OnlyLongerDatagramsOfConnectionsThatItHadAreAnswered) {
  const ConnectionIds ids(secure_random()), others(secure_random());
  const ngtcp2_cid id = ids.make();
  EXPECT_EQ(answered(ids, datagram(id, ConnectionIds::kAnswerBytes)), 0u) << "an answer to an answer";
  EXPECT_EQ(answered(ids, datagram(id, ConnectionIds::kAnswerBytes + 1)), ConnectionIds::kAnswerBytes);
  EXPECT_EQ(answered(others, datagram(id, 1200)), 0u) << "a stranger's";
  std::vector<std::byte> first = datagram(id, 1200);
  first.front() = std::byte{0xc0};
  EXPECT_EQ(answered(ids, first), 0u) << "of a handshake";
  EXPECT_EQ(answered(ids, {}), 0u);
  std::array<std::byte, ConnectionIds::kAnswerBytes - 1> small;
  EXPECT_EQ(ids.answer(**ngtcp2(), datagram(id, 1200), small), 0u);
}

}  // namespace
}  // namespace hawser::backend::quic
