#pragma once

// Credential: a certificate with its key, by which this process shows who it is. The key never leaves.
//
// Thread rule: const after `make`; any thread. Lifetime: GnuTLS's objects live as long as it.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

#include "identity/holder.h"
#include "identity/x509.h"

namespace hawser::identity {

inline constexpr std::size_t kSignatureMax = 1024;  ///< Bytes: those of RSA with 8192 bits.

struct Signature {
  std::uint16_t scheme = 0;  ///< TLS 1.3's number; see signature.h.
  std::string bytes;
};

class Credential {
 public:
  /// `chain`: the certificate, then those between it and the authority, in PEM; `key` in PEM, not encrypted.
  /// Errors: kInvalid (what is wrong with which of them, or they do not belong together), kUnsupported (the kind of
  /// key, GnuTLS is missing).
  static Result<std::shared_ptr<const Credential>> make(std::string_view chain, std::string_view key);

  const Holder& holder() const { return holder_; }
  /// DER, the holder's first.
  const std::vector<std::string>& chain() const { return chain_; }
  Result<Signature> sign(std::string_view content) const;

 private:
  Credential(const tls::Gnutls& library, Owned<gnutls_privkey_t> key) : library_(library), key_(std::move(key)) {}
  Status load_chain(std::string_view pem);
  Status check_key(gnutls_x509_crt_t certificate) const;

  const tls::Gnutls& library_;
  Owned<gnutls_privkey_t> key_;
  Holder holder_;
  std::vector<std::string> chain_;
};

}  // namespace hawser::identity
