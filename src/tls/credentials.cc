#include "tls/credentials.h"

#include <string_view>

#include "base/format.h"
#include "base/try.h"
#include "tls/steps.h"

namespace hawser::tls {
namespace {

/// TLS 1.3 alone. AES-128 first: it is the fastest where processors have instructions for it.
constexpr const char* kPriority =
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:"
    "-GROUP-ALL:+GROUP-X25519:-SIGN-ALL:+SIGN-EDDSA-ED25519";
/// The name in the certificate. It tells nothing: the key is the identity.
constexpr std::string_view kCommonName = "hawser agent";
constexpr unsigned kX509Version = 3;
/// The key lives as long as the agent does, so the certificate's own time must never end it, whatever a clock says.
constexpr time_t kActivation = 0;
constexpr time_t kExpiration = 253'402'300'799;  // 9999-12-31 23:59:59

/// A private key and a certificate while the credentials are made of them.
struct Parts {
  explicit Parts(const Gnutls& gnutls) : library(gnutls) {}
  ~Parts() {
    if (certificate != nullptr) library.x509_crt_deinit(certificate);
    if (key != nullptr) library.x509_privkey_deinit(key);
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  int fill(const KeyPair& keys) {
    const gnutls_datum_t x = datum_of(keys.public_key()), k = datum_of(keys.seed());
    const unsigned char serial = 1;
    Steps steps;
    steps.then([&] { return library.x509_privkey_init(&key); })
        .then([&] { return library.x509_privkey_import_ecc_raw(key, GNUTLS_ECC_CURVE_ED25519, &x, nullptr, &k); })
        .then([&] { return library.x509_crt_init(&certificate); })
        .then([&] { return library.x509_crt_set_version(certificate, kX509Version); })
        .then([&] { return library.x509_crt_set_serial(certificate, &serial, sizeof serial); })
        .then([&] { return library.x509_crt_set_activation_time(certificate, kActivation); })
        .then([&] { return library.x509_crt_set_expiration_time(certificate, kExpiration); })
        .then([&] {
          return library.x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, kCommonName.data(),
                                                static_cast<unsigned>(kCommonName.size()));
        })
        .then([&] { return library.x509_crt_set_key(certificate, key); })
        .then([&] { return library.x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA512, 0); });
    return steps.result();
  }

  const Gnutls& library;
  gnutls_x509_privkey_t key = nullptr;
  gnutls_x509_crt_t certificate = nullptr;
};

}  // namespace

Result<std::shared_ptr<const Credentials>> Credentials::make(const KeyPair& keys) {
  HAWSER_TRY_ASSIGN(const Gnutls* library, gnutls());
  std::shared_ptr<Credentials> credentials(new Credentials(*library));
  HAWSER_TRY(credentials->load(keys));
  return std::shared_ptr<const Credentials>(std::move(credentials));
}

Status Credentials::load(const KeyPair& keys) {
  Parts parts(library_);
  int result = parts.fill(keys);
  if (result < 0) return library_.error(Code::kUnsupported, "making a certificate for Ed25519", result);
  result = library_.certificate_allocate_credentials(&certificate_);
  if (result < 0) return library_.error(Code::kUnsupported, "TLS credentials", result);
  library_.certificate_set_flags(certificate_, GNUTLS_CERTIFICATE_SKIP_KEY_CERT_MATCH);
  result = library_.certificate_set_x509_key(certificate_, &parts.certificate, 1, parts.key);
  if (result < 0) return library_.error(Code::kUnsupported, "TLS credentials", result);
  const char* at = nullptr;
  result = library_.priority_init(&priority_, kPriority, &at);
  if (result >= 0) return {};
  return library_.error(Code::kUnsupported, base::format("GnuTLS {} refuses '{}'", library_.version, at), result)
      .with_advice("the system's policy for GnuTLS (/etc/gnutls/config) must allow TLS 1.3, AES-GCM, X25519, Ed25519");
}

Credentials::~Credentials() {
  if (certificate_ != nullptr) library_.certificate_free_credentials(certificate_);
  if (priority_ != nullptr) library_.priority_deinit(priority_);
}

}  // namespace hawser::tls
