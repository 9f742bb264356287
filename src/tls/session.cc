#include "tls/session.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/copy.h"
#include "base/format.h"
#include "base/try.h"
#include "tls/peer_key.h"

namespace hawser::tls {
namespace {

/// What both ends name as their protocol, so that no other service's connection can be taken for one of ours.
constexpr std::string_view kProtocol = "hawser/2";
constexpr std::string_view kBindingLabel = "EXPORTER-hawser-binding";
/// Most bytes in one message of a handshake; a certificate of ours has less than 400.
constexpr std::size_t kHandshakeMessageMax = 8 * 1024;

std::span<std::byte> bytes_of(const iovec& part) { return {static_cast<std::byte*>(part.iov_base), part.iov_len}; }

}  // namespace

Session::Session(std::shared_ptr<const Credentials> credentials)
    : credentials_(std::move(credentials)), library_(credentials_->library()) {}

Result<std::unique_ptr<Session>> Session::open(std::shared_ptr<const Credentials> credentials, End end) {
  std::unique_ptr<Session> session(new Session(std::move(credentials)));
  HAWSER_TRY(session->init(end));
  return session;
}

Session::~Session() {
  drop_record();
  if (session_ != nullptr) library_.deinit(session_);
}

Status Session::init(End end) {
  const unsigned side =
      end == End::kOpener ? GNUTLS_CLIENT | GNUTLS_FORCE_CLIENT_CERT : static_cast<unsigned>(GNUTLS_SERVER);
  int result = library_.init(&session_, side | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS);
  if (result >= 0) result = library_.priority_set(session_, credentials_->priority());
  if (result >= 0) result = library_.credentials_set(session_, GNUTLS_CRD_CERTIFICATE, credentials_->certificate());
  const gnutls_datum_t protocol = {
      .data = reinterpret_cast<unsigned char*>(const_cast<char*>(kProtocol.data())),  // It is copied.
      .size = static_cast<unsigned>(kProtocol.size())};
  if (result >= 0) result = library_.alpn_set_protocols(session_, &protocol, 1, GNUTLS_ALPN_MANDATORY);
  if (result < 0) return library_.error(Code::kUnsupported, "a TLS session", result);
  if (end == End::kAcceptor) library_.certificate_server_set_request(session_, GNUTLS_CERT_REQUIRE);
  library_.handshake_set_max_packet_length(session_, kHandshakeMessageMax);
  library_.transport_set_ptr(session_, this);
  library_.transport_set_vec_push_function(session_, push);
  library_.transport_set_pull_function(session_, pull);
  return {};
}

// ---- The socket's side.

std::span<std::byte> Session::room() {
  if (in_begin_ == in_end_) in_begin_ = in_end_ = 0;  // GnuTLS takes all there is, parts of records too.
  if (in_begin_ > 0 && in_.size() - in_end_ < kRecordMax) {
    std::memmove(in_.data(), in_.data() + in_begin_, in_end_ - in_begin_);
    in_end_ -= in_begin_;
    in_begin_ = 0;
  }
  // A record may be longer than the first buffer; who is not up yet sends no such.
  if (in_.empty()) in_.resize(kInFirst);
  if (is_up_ && was_filled_ && in_.size() < kInMax) in_.resize(std::min(kInMax, 4 * in_.size()));
  was_filled_ = false;
  return std::span(in_).subspan(in_end_);
}

void Session::came(std::size_t bytes) {
  in_end_ += bytes;
  was_filled_ = in_end_ == in_.size();
}

void Session::sent(std::size_t bytes) {
  out_begin_ += bytes;
  if (out_begin_ < out_.size()) return;
  out_.clear();
  out_begin_ = 0;
}

ssize_t Session::push(gnutls_transport_ptr_t self, const giovec_t* parts, int count) {
  auto& session = *static_cast<Session*>(self);
  const std::size_t before = session.out_.size();
  for (const giovec_t& part : std::span(parts, static_cast<std::size_t>(count))) {
    const auto* const from = static_cast<const std::byte*>(part.iov_base);
    session.out_.insert(session.out_.end(), from, from + part.iov_len);
  }
  return static_cast<ssize_t>(session.out_.size() - before);
}

ssize_t Session::pull(gnutls_transport_ptr_t self, void* to, std::size_t size) {
  auto& session = *static_cast<Session*>(self);
  const std::size_t there = std::min(size, session.in_end_ - session.in_begin_);
  if (there == 0 && !session.in_ended_) {
    session.library_.transport_set_errno(session.session_, EAGAIN);
    return -1;
  }
  if (there > 0) base::copy_cached(to, session.in_.data() + session.in_begin_, there);
  session.in_begin_ += there;
  return static_cast<ssize_t>(there);
}

// ---- The handshake.

Status Session::broken(std::string_view doing, int result) {
  Code code = Code::kCorrupt;
  std::string what(doing);
  switch (result) {
    case GNUTLS_E_PREMATURE_TERMINATION:
      code = Code::kDisconnected;
      break;
    case GNUTLS_E_NO_CERTIFICATE_FOUND:
    case GNUTLS_E_CERTIFICATE_REQUIRED:
      code = Code::kDenied;
      break;
    case GNUTLS_E_NO_CIPHER_SUITES:
    case GNUTLS_E_UNSUPPORTED_VERSION_PACKET:
    case GNUTLS_E_NO_COMMON_KEY_SHARE:
    case GNUTLS_E_NO_APPLICATION_PROTOCOL:
      code = Code::kUnsupported;
      break;
    case GNUTLS_E_FATAL_ALERT_RECEIVED: {
      code = Code::kDenied;
      const char* alert = library_.alert_get_name(library_.alert_get(session_));
      what += base::format(": the peer says '{}'", alert == nullptr ? "an unknown alert" : alert);
      break;
    }
    default:
      break;
  }
  failed_ = library_.error(code, what, result).with_scope(Scope::kPath);
  library_.alert_send_appropriate(session_, result);
  return failed_;
}

Status Session::handshake() {
  if (is_up_ || !failed_.ok()) return failed_;
  int result = 0;
  do {
    result = library_.handshake(session_);
  } while (result == GNUTLS_E_INTERRUPTED || result == GNUTLS_E_WARNING_ALERT_RECEIVED);
  if (result == GNUTLS_E_AGAIN) return {};
  if (result < 0) return broken("TLS handshake", result);
  return learn();
}

Status Session::learn() {
  HAWSER_TRY(learn_key());
  const int result = library_.prf_rfc5705(session_, kBindingLabel.size(), kBindingLabel.data(), 0, nullptr,
                                          binding_.size(), reinterpret_cast<char*>(binding_.data()));
  if (result < 0) return broken("TLS exporter", result);
  is_up_ = true;
  return {};
}

Status Session::learn_key() {
  Result<PublicKey> key = peer_key_of(library_, session_);
  if (key) {
    peer_key_ = *key;
    return {};
  }
  failed_ = key.error().with_scope(Scope::kPath);
  library_.alert_send_appropriate(session_, GNUTLS_E_NO_CERTIFICATE_FOUND);
  return failed_;
}

// ---- Plain bytes.

Result<std::size_t> Session::write_record(std::span<const std::byte> bytes) {
  if (out_.capacity() < kOut) out_.reserve(kOut);
  ssize_t taken = 0;
  do {
    taken = library_.record_send(session_, bytes.data(), bytes.size());
  } while (taken == GNUTLS_E_INTERRUPTED);  // It never waits: `push` takes all there is.
  if (taken < 0) return broken("TLS, sending", static_cast<int>(taken));
  return static_cast<std::size_t>(taken);
}

Result<std::size_t> Session::write(std::span<const iovec> parts) {
  HAWSER_TRY(failed_);
  HAWSER_ASSERT(is_up_, "plain bytes come after the handshake");
  std::size_t total = 0, at = 0;
  while (!parts.empty() && has_out_room()) {
    const std::span<const std::byte> rest = bytes_of(parts.front()).subspan(at);
    if (rest.size() >= kRecordMax) {
      HAWSER_TRY_ASSIGN(const std::size_t taken, write_record(rest.first(kRecordMax)));
      total += taken;
      at += taken;
      continue;
    }
    gathered_.clear();
    while (!parts.empty() && gathered_.size() < kRecordMax) {
      const auto next = bytes_of(parts.front())
                            .subspan(at)
                            .first(std::min(parts.front().iov_len - at, kRecordMax - gathered_.size()));
      gathered_.insert(gathered_.end(), next.begin(), next.end());
      at += next.size();
      if (at < parts.front().iov_len) break;
      parts = parts.subspan(1);
      at = 0;
    }
    if (gathered_.empty()) break;
    // In several records where the peer takes small ones only (RFC 8449).
    for (std::span<const std::byte> left = gathered_; !left.empty();) {
      HAWSER_TRY_ASSIGN(const std::size_t taken, write_record(left));
      total += taken;
      left = left.subspan(taken);
    }
  }
  return total;
}

void Session::drop_record() {
  if (record_ != nullptr) library_.packet_deinit(std::exchange(record_, nullptr));
  unread_ = {};
}

/// Opens the next record. False: it did not come yet, or the peer is done. GnuTLS keeps its bytes until they were
/// copied from there: its own copy is the C library's, which has the bad case that base::copy_cached has not.
Result<bool> Session::next_record() {
  drop_record();
  ssize_t got = 0;
  do {
    got = library_.record_recv_packet(session_, &record_);
  } while (got == GNUTLS_E_INTERRUPTED || got == GNUTLS_E_WARNING_ALERT_RECEIVED);
  if (got == GNUTLS_E_AGAIN) return false;
  if (got < 0) return broken("TLS, receiving", static_cast<int>(got));
  if (record_ == nullptr) {
    is_done_ = true;
    return false;
  }
  gnutls_datum_t bytes = {};
  library_.packet_get(record_, &bytes, nullptr);
  unread_ = {reinterpret_cast<const std::byte*>(bytes.data), bytes.size};
  return true;
}

Result<std::size_t> Session::read(std::span<const iovec> parts) {
  HAWSER_TRY(failed_);
  HAWSER_ASSERT(is_up_, "plain bytes come after the handshake");
  std::size_t total = 0;
  for (const iovec& part : parts) {
    for (std::span<std::byte> left = bytes_of(part); !left.empty();) {
      if (unread_.empty()) {
        const Result<bool> is_there = is_done_ ? false : next_record();
        if (!is_there && total == 0) return is_there.error();
        if (!is_there || !*is_there) return total;  // What broke it is told by the next call.
      }
      const std::size_t count = std::min(left.size(), unread_.size());
      base::copy_cached(left.data(), unread_.data(), count);
      unread_ = unread_.subspan(count);
      total += count;
      left = left.subspan(count);
    }
  }
  if (unread_.empty()) drop_record();
  return total;
}

void Session::say_done() {
  if (is_up_ && failed_.ok()) library_.bye(session_, GNUTLS_SHUT_WR);
}

std::string Session::describe() const {
  char* const text = library_.session_get_desc(session_);
  std::string result = text == nullptr ? "TLS" : text;
  (*library_.free)(text);
  return result;
}

}  // namespace hawser::tls
