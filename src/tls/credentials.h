#pragma once

// Credentials: an agent's key as a self-signed certificate, and the algorithms it takes, for all of its TLS sessions.
// No authority vouches for the certificate: who knows the key from the agent's card compares it (Session::peer_key).
//
// Thread rule: const after `make`; sessions of any thread may share it.

#include <memory>

#include <hawser/status.h>

#include "tls/gnutls_library.h"
#include "tls/key_pair.h"

namespace hawser::tls {

class Credentials {
 public:
  /// Opens GnuTLS if nobody did. Errors: kUnsupported (it is missing, too old, or the system's policy forbids what is
  /// needed).
  static Result<std::shared_ptr<const Credentials>> make(const KeyPair& keys);

  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;
  ~Credentials();

  const Gnutls& library() const { return library_; }
  gnutls_certificate_credentials_t certificate() const { return certificate_; }
  gnutls_priority_t priority() const { return priority_; }

 private:
  explicit Credentials(const Gnutls& library) : library_(library) {}
  Status load(const KeyPair& keys);

  const Gnutls& library_;
  gnutls_certificate_credentials_t certificate_ = nullptr;
  gnutls_priority_t priority_ = nullptr;
};

}  // namespace hawser::tls
