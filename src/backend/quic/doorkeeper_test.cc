#include "backend/quic/doorkeeper.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <chrono>
#include <vector>

namespace hawser::backend::quic {
namespace {

class QuicFirst : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_GE(sodium_init(), 0);
    if (const auto library = ngtcp2(); !library) GTEST_SKIP() << library.error().to_string();
  }
  /// A first datagram's head with that token.
  ngtcp2_pkt_hd head(std::span<const std::byte> token) const {
    ngtcp2_pkt_hd head = {};
    head.version = NGTCP2_PROTO_VER_V1;
    head.dcid.datalen = 18;
    set_token(head, {reinterpret_cast<const std::uint8_t*>(token.data()), token.size()});
    return head;
  }
  const base::Id128 secret_ = base::random_id128();
  const Route route_ = {.local = base::numeric_address({"10.0.0.2", 1}).value(),
                        .remote = base::numeric_address({"10.0.0.1", 2}).value()};
  const Instant now_ = Instant::from_ns(1'000'000'000);
  const tls::KeyPair keys_ = tls::KeyPair::make();
};

TEST_F(QuicFirst, TheCardsSecretIsLetInAndInACrowdHasToProveItsAddress) {
  Doorkeeper door(*ngtcp2().value(), {.secret = secret_, .key = keys_.public_key()});
  const auto token = Doorkeeper::token(secret_, keys_.public_key());
  EXPECT_EQ(door.judge(head(token), route_, false, now_).verdict, Verdict::kAccept);
  EXPECT_EQ(door.judge(head(token), route_, true, now_).verdict, Verdict::kRetry);
}

TEST_F(QuicFirst, AnotherSecretAnotherKeyAndGarbageGetNothing) {
  Doorkeeper door(*ngtcp2().value(), {.secret = secret_, .key = keys_.public_key()});
  const auto other_secret = Doorkeeper::token(base::random_id128(), keys_.public_key());
  const auto other_key = Doorkeeper::token(secret_, tls::KeyPair::make().public_key());
  auto changed = Doorkeeper::token(secret_, keys_.public_key());
  changed[40] ^= std::byte{1};
  EXPECT_EQ(door.judge(head(other_secret), route_, false, now_).verdict, Verdict::kIgnore);
  EXPECT_EQ(door.judge(head(other_key), route_, false, now_).verdict, Verdict::kIgnore);
  EXPECT_EQ(door.judge(head(changed), route_, false, now_).verdict, Verdict::kIgnore);
  EXPECT_EQ(door.judge(head({}), route_, false, now_).verdict, Verdict::kIgnore);
  for (const std::size_t size : {63u, 65u, 1u, 200u}) {
    std::vector<std::byte> garbage(size, std::byte{NGTCP2_CRYPTO_TOKEN_MAGIC_RETRY});
    EXPECT_EQ(door.judge(head(garbage), route_, false, now_).verdict, Verdict::kIgnore) << size;
    garbage[0] = std::byte{'T'};
    EXPECT_EQ(door.judge(head(garbage), route_, false, now_).verdict, Verdict::kIgnore) << size;
  }
}

TEST_F(QuicFirst, WithoutASecretEverybodyProvesAnAddressAndMayComeIn) {
  Doorkeeper door(*ngtcp2().value(), {.secret = {}, .key = keys_.public_key()});
  EXPECT_EQ(door.judge(head({}), route_, false, now_).verdict, Verdict::kRetry);
}

}  // namespace
}  // namespace hawser::backend::quic
