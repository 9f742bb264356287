#include "identity/credential.h"

#include <utility>

#include "base/format.h"
#include "base/try.h"
#include "identity/signature.h"

namespace hawser::identity {
namespace {

constexpr std::size_t kPublicKeyMax = 4096;  ///< Bytes of one in DER.

Result<std::string> der_of_key(const tls::Gnutls& library, gnutls_pubkey_t key) {
  std::string der(kPublicKeyMax, '\0');
  std::size_t size = der.size();
  const int result = library.pubkey_export(key, GNUTLS_X509_FMT_DER, der.data(), &size);
  if (result < 0) return library.error(Code::kInvalid, "a public key", result);
  der.resize(size);
  return der;
}

}  // namespace

Result<std::shared_ptr<const Credential>> Credential::make(std::string_view chain, std::string_view key) {
  HAWSER_TRY_ASSIGN(const tls::Gnutls* library, tls::gnutls());
  HAWSER_TRY_ASSIGN(auto handle, make_owned(*library, library->privkey_init, library->privkey_deinit));
  const gnutls_datum_t bytes = datum_of(key);
  const int result = library->privkey_import_x509_raw(handle.get(), &bytes, GNUTLS_X509_FMT_PEM, nullptr, 0);
  if (result < 0) {
    return library->error(Code::kInvalid, "the key is none in PEM, or is encrypted by a password", result);
  }
  std::shared_ptr<Credential> credential(new Credential(*library, std::move(handle)));
  HAWSER_TRY(credential->load_chain(chain));
  HAWSER_TRY_ASSIGN(const Signature trial, credential->sign("a trial"));
  if (trial.bytes.size() > kSignatureMax) {
    return Status(Code::kUnsupported, base::format("the key makes signatures of {} bytes, at most {} are taken",
                                                   trial.bytes.size(), kSignatureMax))
        .with_advice("RSA keys may have up to 8192 bits");
  }
  return std::shared_ptr<const Credential>(std::move(credential));
}

Status Credential::load_chain(std::string_view pem) {
  HAWSER_TRY_ASSIGN(const std::vector<Certificate> certificates, certificates_from_pem(library_, pem));
  if (certificates.size() > kChainMax) {
    return Status(Code::kInvalid, base::format("{} certificates are in the chain, at most {} are taken",
                                               certificates.size(), kChainMax))
        .with_advice("the file is to hold the agent's certificate and those between it and the authority only");
  }
  HAWSER_TRY_ASSIGN(holder_, holder_of(library_, certificates.front().get()));
  HAWSER_TRY(check_key(certificates.front().get()));
  std::size_t bytes = 0;
  for (const Certificate& each : certificates) {
    HAWSER_TRY_ASSIGN(std::string der, der_of(library_, each.get()));
    bytes += der.size();
    chain_.push_back(std::move(der));
  }
  if (bytes <= kChainBytesMax) return {};
  return Status(Code::kInvalid,
                base::format("the chain of certificates has {} bytes, at most {} are taken", bytes, kChainBytesMax));
}

Status Credential::check_key(gnutls_x509_crt_t certificate) const {
  HAWSER_TRY_ASSIGN(const auto shown, make_owned(library_, library_.pubkey_init, library_.pubkey_deinit));
  HAWSER_TRY_ASSIGN(const auto held, make_owned(library_, library_.pubkey_init, library_.pubkey_deinit));
  int result = library_.pubkey_import_x509(shown.get(), certificate, 0);
  if (result >= 0) result = library_.pubkey_import_privkey(held.get(), key_.get(), 0, 0);
  if (result < 0) return library_.error(Code::kInvalid, "the key of the certificate", result);
  HAWSER_TRY_ASSIGN(const std::string of_certificate, der_of_key(library_, shown.get()));
  HAWSER_TRY_ASSIGN(const std::string of_key, der_of_key(library_, held.get()));
  if (of_certificate == of_key) return {};
  return Status(Code::kInvalid, "the key is not that of the certificate");
}

Result<Signature> Credential::sign(std::string_view content) const {
  unsigned bits = 0;
  const int kind = library_.privkey_get_pk_algorithm(key_.get(), &bits);
  const SignatureScheme* const scheme = scheme_of_key(static_cast<gnutls_pk_algorithm_t>(kind), bits);
  if (scheme == nullptr) {
    return Status(Code::kUnsupported, "the identity's key is of a kind that is not used")
        .with_advice("keys of Ed25519, ECDSA (P-256, P-384, P-521) and RSA are");
  }
  const gnutls_datum_t bytes = datum_of(content);
  gnutls_datum_t out = {};
  const int result = library_.privkey_sign_data2(key_.get(), scheme->algorithm, 0, &bytes, &out);
  if (result < 0) return library_.error(Code::kFailed, "signing by the identity's key", result);
  return Signature{.scheme = scheme->number, .bytes = take_datum(library_, out)};
}

}  // namespace hawser::identity
