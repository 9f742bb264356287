#pragma once

// Signatures that an identity's key makes, named by TLS 1.3's numbers (RFC 8446, section 4.2.3).
//
// Thread rule: pure functions.

#include <cstdint>

#include "tls/gnutls_library.h"

namespace hawser::identity {

struct SignatureScheme {
  std::uint16_t number = 0;
  gnutls_sign_algorithm_t algorithm = GNUTLS_SIGN_UNKNOWN;
  gnutls_pk_algorithm_t key = GNUTLS_PK_UNKNOWN;  ///< The kind of key that makes it.
};

/// Null: it is none that is taken.
const SignatureScheme* scheme_of_number(std::uint16_t number);
/// What a key of so many bits signs with. Null: no key of that kind is used.
const SignatureScheme* scheme_of_key(gnutls_pk_algorithm_t key, unsigned bits);

}  // namespace hawser::identity
