#include "tls/peer_key.h"

#include <cstring>

namespace hawser::tls {

Result<PublicKey> peer_key_of(const Gnutls& library, gnutls_session_t session) {
  unsigned count = 0;
  const gnutls_datum_t* const shown = library.certificate_get_peers(session, &count);
  if (shown == nullptr || count == 0) {
    return library.error(Code::kDenied, "TLS handshake", GNUTLS_E_NO_CERTIFICATE_FOUND);
  }
  gnutls_x509_crt_t certificate = nullptr;
  int result = library.x509_crt_init(&certificate);
  if (result < 0) return library.error(Code::kCorrupt, "the peer's certificate", result);
  result = library.x509_crt_import(certificate, &shown[0], GNUTLS_X509_FMT_DER);
  gnutls_ecc_curve_t curve = GNUTLS_ECC_CURVE_INVALID;
  gnutls_datum_t x = {};
  if (result >= 0) result = library.x509_crt_get_pk_ecc_raw(certificate, &curve, &x, nullptr);
  library.x509_crt_deinit(certificate);
  PublicKey key{};
  const bool is_ours = result >= 0 && curve == GNUTLS_ECC_CURVE_ED25519 && x.size == key.size();
  if (is_ours) std::memcpy(key.data(), x.data, x.size);
  if (x.data != nullptr) (*library.free)(x.data);
  if (is_ours) return key;
  return library.error(Code::kDenied, "the peer's certificate is not of Ed25519",
                       result < 0 ? result : GNUTLS_E_UNSUPPORTED_SIGNATURE_ALGORITHM);
}

}  // namespace hawser::tls
