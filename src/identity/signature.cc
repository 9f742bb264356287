#include "identity/signature.h"

#include <algorithm>
#include <array>

namespace hawser::identity {
namespace {

constexpr std::array<SignatureScheme, 5> kSchemes = {{
    {0x0403, GNUTLS_SIGN_ECDSA_SHA256, GNUTLS_PK_ECDSA},
    {0x0503, GNUTLS_SIGN_ECDSA_SHA384, GNUTLS_PK_ECDSA},
    {0x0603, GNUTLS_SIGN_ECDSA_SHA512, GNUTLS_PK_ECDSA},
    {0x0804, GNUTLS_SIGN_RSA_PSS_RSAE_SHA256, GNUTLS_PK_RSA},
    {0x0807, GNUTLS_SIGN_EDDSA_ED25519, GNUTLS_PK_EDDSA_ED25519},
}};

constexpr unsigned kP256 = 256, kP384 = 384;

}  // namespace

const SignatureScheme* scheme_of_number(std::uint16_t number) {
  const auto* const found =
      std::ranges::find_if(kSchemes, [number](const SignatureScheme& each) { return each.number == number; });
  return found == kSchemes.end() ? nullptr : &*found;
}

const SignatureScheme* scheme_of_key(gnutls_pk_algorithm_t key, unsigned bits) {
  switch (key) {
    case GNUTLS_PK_ECDSA:
      return scheme_of_number(bits <= kP256 ? 0x0403 : bits <= kP384 ? 0x0503 : 0x0603);
    case GNUTLS_PK_RSA:
      return scheme_of_number(0x0804);
    case GNUTLS_PK_EDDSA_ED25519:
      return scheme_of_number(0x0807);
    default:
      return nullptr;
  }
}

}  // namespace hawser::identity
