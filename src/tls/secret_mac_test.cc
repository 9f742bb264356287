#include "tls/secret_mac.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hawser::tls {
namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(SecretMac, IsOverThePartsOneBehindTheOther) {
  const base::Id128 secret = {.hi = 0x1122334455667788, .lo = 0x99aabbccddeeff00};
  EXPECT_EQ(secret_mac(secret, {bytes("ab"), bytes(""), bytes("c")}), secret_mac(secret, {bytes("abc")}));
  EXPECT_NE(secret_mac(secret, {bytes("abc")}), secret_mac(secret, {bytes("abd")}));
}

// hashlib.blake2b(b"abc", digest_size=32, key=bytes.fromhex("00ffeeddccbbaa998877665544332211"))
TEST(SecretMac, Golden) {
  const SecretMac mac = secret_mac({.hi = 0x1122334455667788, .lo = 0x99aabbccddeeff00}, {bytes("abc")});
  std::string hex;
  for (const std::byte byte : mac) {
    for (const int digit : {std::to_integer<int>(byte) >> 4, std::to_integer<int>(byte) & 15}) {
      hex += "0123456789abcdef"[digit];
    }
  }
  EXPECT_EQ(hex, "49f818784ad763d0fb9b4a23b363871f82504fd232b9c4ef02a1fe034af767c0");
}

}  // namespace
}  // namespace hawser::tls
