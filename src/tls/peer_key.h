#pragma once

// The key that a TLS session's peer has proven to have.
//
// Thread rule: the session's.

#include <hawser/status.h>

#include "tls/gnutls_library.h"
#include "tls/key_pair.h"

namespace hawser::tls {

/// Of a session whose handshake is through: GnuTLS has then checked the peer's signature over it. kDenied: the peer
/// showed no certificate, or one that is not of Ed25519.
Result<PublicKey> peer_key_of(const Gnutls& library, gnutls_session_t session);

}  // namespace hawser::tls
