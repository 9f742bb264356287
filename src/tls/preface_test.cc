#include "tls/preface.h"

#include <gtest/gtest.h>

namespace hawser::tls {
namespace {

constexpr base::Id128 kSecret = {.hi = 0x1122334455667788, .lo = 0x99aabbccddeeff00};

PublicKey key_of(std::byte fill) {
  PublicKey key;
  key.fill(fill);
  return key;
}

TEST(Preface, IsOfOneSecretForOneAcceptor) {
  const PublicKey acceptor = key_of(std::byte{7});
  const Preface preface = make_preface(kSecret, acceptor);
  EXPECT_EQ(preface[0], kPrefaceFirst);
  EXPECT_TRUE(is_preface(preface, kSecret, acceptor));
  EXPECT_FALSE(is_preface(preface, {kSecret.hi, kSecret.lo + 1}, acceptor));
  EXPECT_FALSE(is_preface(preface, {kSecret.hi + 1, kSecret.lo}, acceptor));
  EXPECT_FALSE(is_preface(preface, kSecret, key_of(std::byte{8})));
  EXPECT_NE(make_preface(kSecret, acceptor), preface) << "each has a nonce of its own";
}

TEST(Preface, EachByteBeforeTheZerosCounts) {
  const PublicKey acceptor = key_of(std::byte{7});
  const Preface good = make_preface(kSecret, acceptor);
  for (std::size_t i = 0; i < kPrefaceBytes - 8; ++i) {
    Preface changed = good;
    changed[i] ^= std::byte{1};
    EXPECT_FALSE(is_preface(changed, kSecret, acceptor)) << i;
  }
}

}  // namespace
}  // namespace hawser::tls
