#include "identity/signature.h"

#include <gtest/gtest.h>

namespace hawser::identity {
namespace {

TEST(SignatureScheme, FitsTheKey) {
  const auto number_of = [](gnutls_pk_algorithm_t key, unsigned bits) {
    const SignatureScheme* const scheme = scheme_of_key(key, bits);
    return scheme == nullptr ? 0 : scheme->number;
  };
  EXPECT_EQ(number_of(GNUTLS_PK_EDDSA_ED25519, 256), 0x0807);
  EXPECT_EQ(number_of(GNUTLS_PK_ECDSA, 256), 0x0403);
  EXPECT_EQ(number_of(GNUTLS_PK_ECDSA, 257), 0x0503);
  EXPECT_EQ(number_of(GNUTLS_PK_ECDSA, 384), 0x0503);
  EXPECT_EQ(number_of(GNUTLS_PK_ECDSA, 385), 0x0603);
  EXPECT_EQ(number_of(GNUTLS_PK_RSA, 2048), 0x0804);
  EXPECT_EQ(number_of(GNUTLS_PK_DSA, 2048), 0);
}

// SHA-1, PKCS #1 v1.5 and what has no number in TLS 1.3 are not taken.
TEST(SignatureScheme, OthersAreNotTaken) {
  for (const int number : {0, 0x0201, 0x0203, 0x0401, 0x0501, 0x0805, 0x0808, 0xffff}) {
    EXPECT_EQ(scheme_of_number(static_cast<std::uint16_t>(number)), nullptr) << number;
  }
  for (const int number : {0x0403, 0x0503, 0x0603, 0x0804, 0x0807}) {
    ASSERT_NE(scheme_of_number(static_cast<std::uint16_t>(number)), nullptr) << number;
    EXPECT_EQ(scheme_of_number(static_cast<std::uint16_t>(number))->number, number);
  }
}

}  // namespace
}  // namespace hawser::identity
