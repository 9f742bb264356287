#pragma once

// TlsEnd: one end of the TLS 1.3 handshake inside of a QUIC connection (RFC 9001). Both ends show a self-signed
// certificate of their agent's key; to whom a key belongs is the caller's to know, as in tls/session.h.
//
// Thread rule: one thread. Lifetime: the ngtcp2 connection that it was attached to is deleted before it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <hawser/status.h>

#include "backend/quic/handshake_end.h"
#include "backend/quic/ngtcp2_library.h"
#include "tls/credentials.h"
#include "tls/key_pair.h"
#include "tls/session.h"

namespace hawser::backend::quic {

/// An agent's credentials for all its QUIC connections.
class TlsCredentials final : public Handshakes, public std::enable_shared_from_this<TlsCredentials> {
 public:
  /// Errors: kUnsupported (GnuTLS or ngtcp2 is missing, or the system's policy forbids what is needed).
  static Result<std::shared_ptr<const TlsCredentials>> make(const tls::KeyPair& keys);
  TlsCredentials(const TlsCredentials&) = delete;
  TlsCredentials& operator=(const TlsCredentials&) = delete;
  ~TlsCredentials() override;

  Result<std::unique_ptr<HandshakeEnd>> open_end(tls::End end) const override;
  const char* alert_name(std::uint8_t alert) const override;

  const tls::Gnutls& gnutls() const { return base_->library(); }
  const Ngtcp2& library() const { return library_; }
  const tls::Credentials& certificate() const { return *base_; }
  gnutls_priority_t priority() const { return priority_; }

 private:
  TlsCredentials(std::shared_ptr<const tls::Credentials> base, const Ngtcp2& library)
      : base_(std::move(base)), library_(library) {}

  const std::shared_ptr<const tls::Credentials> base_;
  const Ngtcp2& library_;
  gnutls_priority_t priority_ = nullptr;
};

class TlsEnd final : public HandshakeEnd {
 public:
  static Result<std::unique_ptr<TlsEnd>> open(std::shared_ptr<const TlsCredentials> credentials, tls::End end);
  ~TlsEnd() override;
  TlsEnd(const TlsEnd&) = delete;
  TlsEnd& operator=(const TlsEnd&) = delete;

  void add_callbacks(ngtcp2_callbacks& table) const override;
  void attach(ngtcp2_conn* connection) override;
  /// kDenied: the peer showed no certificate of Ed25519.
  Status learn() override;

  const tls::PublicKey& peer_key() const override { return peer_key_; }
  /// RFC 5705.
  Result<std::array<std::byte, 32>> binding(std::int64_t stream) const override;
  std::string describe() const override;

 private:
  explicit TlsEnd(std::shared_ptr<const TlsCredentials> credentials) : credentials_(std::move(credentials)) {}
  Status init(tls::End end);

  const std::shared_ptr<const TlsCredentials> credentials_;
  gnutls_session_t session_ = nullptr;
  ngtcp2_crypto_conn_ref reference_ = {};
  tls::PublicKey peer_key_{};
};

}  // namespace hawser::backend::quic
