#pragma once

// Trust: the authorities whose certificates are believed, and the certificates that they took back.
//
// Thread rule: const after `make`; any thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "identity/credential.h"
#include "identity/x509.h"

namespace hawser::identity {

class Trust {
 public:
  /// `authorities` and `revoked` (may be empty): certificates and revocation lists in PEM. `domain`: of the identities
  /// that are believed. Errors: kInvalid.
  static Result<std::shared_ptr<const Trust>> make(std::string_view authorities, std::string_view revoked,
                                                   std::string_view domain);

  /// The highest number of a list of revoked certificates in it; 0: there is none, or none has a number.
  std::uint64_t revocations() const { return revocations_; }
  /// What the first certificate of `chain` (DER) says, if an authority vouches for it now, by the system's clock.
  /// Errors: kDenied: another authority, another domain, expired, not yet valid, revoked, each in words; kCorrupt.
  /// `look`, if there is one, is asked about the holder before any signature is checked, and what it denies costs none:
  /// nobody has proven yet to be that holder.
  Result<Holder> verify(std::span<const std::string> chain,
                        const std::function<Status(const Holder&)>& look = nullptr) const;
  /// Whether `signature` over `content` is by the key of that certificate (DER). Errors: kDenied.
  Status check(const std::string& certificate, const Signature& signature, std::string_view content) const;

 private:
  explicit Trust(const tls::Gnutls& library) : library_(library) {}
  Status add_authorities(std::string_view pem);
  Status add_revoked(std::string_view pem);
  Status check_now(const Holder& holder) const;

  const tls::Gnutls& library_;
  Owned<gnutls_x509_trust_list_t> list_{nullptr, nullptr};
  std::string domain_;
  std::uint64_t revocations_ = 0;
};

}  // namespace hawser::identity
