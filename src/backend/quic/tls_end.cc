#include "backend/quic/tls_end.h"

#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/format.h"
#include "base/try.h"
#include "tls/peer_key.h"

namespace hawser::backend::quic {
namespace {

/// As tls/credentials.cc, without what only middleboxes of TCP need (RFC 9001, section 8.4).
constexpr const char* kPriority =
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:"
    "-GROUP-ALL:+GROUP-X25519:-SIGN-ALL:+SIGN-EDDSA-ED25519:%DISABLE_TLS13_COMPAT_MODE";
constexpr std::string_view kProtocol = "hawser-quic/1";
constexpr std::string_view kBindingLabel = "EXPORTER-hawser-quic-stream";
/// Most bytes in one message of a handshake; a certificate of ours has less than 400.
constexpr std::size_t kHandshakeMessageMax = 8 * 1024;

}  // namespace

Result<std::shared_ptr<const TlsCredentials>> TlsCredentials::make(const tls::KeyPair& keys) {
  HAWSER_TRY_ASSIGN(const Ngtcp2* library, ngtcp2());
  HAWSER_TRY_ASSIGN(auto base, tls::Credentials::make(keys));
  std::shared_ptr<TlsCredentials> credentials(new TlsCredentials(std::move(base), *library));
  const char* at = nullptr;
  const int result = credentials->gnutls().priority_init(&credentials->priority_, kPriority, &at);
  if (result < 0)
    return credentials->gnutls().error(Code::kUnsupported, base::format("GnuTLS refuses '{}'", at), result);
  return std::shared_ptr<const TlsCredentials>(std::move(credentials));
}

TlsCredentials::~TlsCredentials() {
  if (priority_ != nullptr) gnutls().priority_deinit(priority_);
}

Result<std::unique_ptr<HandshakeEnd>> TlsCredentials::open_end(tls::End end) const {
  HAWSER_TRY_ASSIGN(std::unique_ptr<HandshakeEnd> opened, TlsEnd::open(shared_from_this(), end));
  return opened;
}

const char* TlsCredentials::alert_name(std::uint8_t alert) const {
  return gnutls().alert_get_name(static_cast<gnutls_alert_description_t>(alert));
}

Result<std::unique_ptr<TlsEnd>> TlsEnd::open(std::shared_ptr<const TlsCredentials> credentials, tls::End end) {
  std::unique_ptr<TlsEnd> opened(new TlsEnd(std::move(credentials)));
  HAWSER_TRY(opened->init(end));
  return opened;
}

TlsEnd::~TlsEnd() {
  if (session_ != nullptr) credentials_->gnutls().deinit(session_);
}

Status TlsEnd::init(tls::End end) {
  const tls::Gnutls& gnutls = credentials_->gnutls();
  const bool is_opener = end == tls::End::kOpener;
  const unsigned side = is_opener ? GNUTLS_CLIENT | GNUTLS_FORCE_CLIENT_CERT : static_cast<unsigned>(GNUTLS_SERVER);
  int result = gnutls.init(&session_, side | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS);
  if (result >= 0) result = gnutls.priority_set(session_, credentials_->priority());
  if (result >= 0) {
    result = gnutls.credentials_set(session_, GNUTLS_CRD_CERTIFICATE, credentials_->certificate().certificate());
  }
  const gnutls_datum_t protocol = tls::datum_of(base::as_bytes(kProtocol));  // It is copied.
  if (result >= 0) result = gnutls.alpn_set_protocols(session_, &protocol, 1, GNUTLS_ALPN_MANDATORY);
  if (result < 0) return gnutls.error(Code::kUnsupported, "a TLS session for QUIC", result);
  if (!is_opener) gnutls.certificate_server_set_request(session_, GNUTLS_CERT_REQUIRE);
  gnutls.handshake_set_max_packet_length(session_, kHandshakeMessageMax);
  const Ngtcp2::Crypto& crypto = credentials_->library().crypto;
  const int configured =
      is_opener ? crypto.gnutls_configure_client_session(session_) : crypto.gnutls_configure_server_session(session_);
  if (configured != 0) return Status(Code::kUnsupported, "GnuTLS has no functions for QUIC: 3.7.2 or later is needed");
  return {};
}

void TlsEnd::add_callbacks(ngtcp2_callbacks& table) const {
  const Ngtcp2::Crypto& crypto = credentials_->library().crypto;
  table.client_initial = crypto.client_initial_cb;
  table.recv_client_initial = crypto.recv_client_initial_cb;
  table.recv_crypto_data = crypto.recv_crypto_data_cb;
  table.encrypt = crypto.encrypt_cb;
  table.decrypt = crypto.decrypt_cb;
  table.hp_mask = crypto.hp_mask_cb;
  table.recv_retry = crypto.recv_retry_cb;
  table.update_key = crypto.update_key_cb;
  table.delete_crypto_aead_ctx = crypto.delete_crypto_aead_ctx_cb;
  table.delete_crypto_cipher_ctx = crypto.delete_crypto_cipher_ctx_cb;
  table.get_path_challenge_data = crypto.get_path_challenge_data_cb;
  table.version_negotiation = crypto.version_negotiation_cb;
}

void TlsEnd::attach(ngtcp2_conn* connection) {
  reference_.user_data = connection;
  reference_.get_conn = [](ngtcp2_crypto_conn_ref* self) { return static_cast<ngtcp2_conn*>(self->user_data); };
  credentials_->gnutls().session_set_ptr(session_, &reference_);
  credentials_->library().conn_set_tls_native_handle(connection, session_);
}

Status TlsEnd::learn() {
  HAWSER_TRY_ASSIGN(peer_key_, tls::peer_key_of(credentials_->gnutls(), session_));
  return {};
}

Result<std::array<std::byte, 32>> TlsEnd::binding(std::int64_t stream) const {
  std::array<std::byte, sizeof(std::uint64_t)> context;
  base::store_little_endian(context.data(), static_cast<std::uint64_t>(stream));
  std::array<std::byte, 32> number;
  const int result = credentials_->gnutls().prf_rfc5705(session_, kBindingLabel.size(), kBindingLabel.data(),
                                                        context.size(), reinterpret_cast<const char*>(context.data()),
                                                        number.size(), reinterpret_cast<char*>(number.data()));
  if (result < 0) return credentials_->gnutls().error(Code::kUnsupported, "TLS exporter", result);
  return number;
}

std::string TlsEnd::describe() const {
  const tls::Gnutls& gnutls = credentials_->gnutls();
  char* text = gnutls.session_get_desc(session_);
  if (text == nullptr) return "QUIC v1";
  std::string described = base::format("QUIC v1, {}", text);
  (*gnutls.free)(text);
  return described;
}

}  // namespace hawser::backend::quic
