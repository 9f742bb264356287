#include "tls/key_pair.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <algorithm>
#include <memory>
#include <string_view>

namespace hawser::tls {
namespace {

class KeyPairTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_GE(sodium_init(), 0); }
};

std::byte digit(char c) { return std::byte(c <= '9' ? c - '0' : c - 'a' + 10); }

template <typename Bytes>
Bytes from_hex(std::string_view hex) {
  Bytes bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]);
  return bytes;
}

// RFC 8032, section 7.1, the first two test vectors.
TEST_F(KeyPairTest, PublicKeysAreThoseOfTheStandard) {
  const auto one =
      KeyPair::from(from_hex<KeyPair::Seed>("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"));
  EXPECT_EQ(one.public_key(), from_hex<PublicKey>("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"));
  const auto two =
      KeyPair::from(from_hex<KeyPair::Seed>("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"));
  EXPECT_EQ(two.public_key(), from_hex<PublicKey>("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"));
}

TEST_F(KeyPairTest, EachIsNew) {
  const KeyPair one = KeyPair::make(), other = KeyPair::make();
  EXPECT_NE(one.public_key(), other.public_key());
  EXPECT_NE(one.seed(), other.seed());
  EXPECT_EQ(KeyPair::from(one.seed()).public_key(), one.public_key());
}

TEST_F(KeyPairTest, TheSecretIsWiped) {
  alignas(KeyPair) std::byte room[sizeof(KeyPair)];
  KeyPair* keys = new (room) KeyPair(KeyPair::make());
  const KeyPair::Seed seed = keys->seed();
  std::destroy_at(keys);
  EXPECT_EQ(std::search(std::begin(room), std::end(room), seed.begin(), seed.end()), std::end(room));
}

}  // namespace
}  // namespace hawser::tls
