#include "backend/quic/end_reasons.h"

#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/shown.h"

namespace hawser::backend::quic {

Status disconnected(std::string text) { return Status(Code::kDisconnected, std::move(text)).with_scope(Scope::kPath); }

Status reason_of(const CloseError& said, const Handshakes& handshakes) {
  if (said.type == kApplicationClose) {
    if (said.error_code == kCodeOrderly) return {};
    if (said.error_code == kCodeStill) return disconnected("the peer has closed the connection: it stands still there");
    return disconnected("the peer has aborted the connection");
  }
  const std::string_view reason(reinterpret_cast<const char*>(said.reason), said.reasonlen);
  if ((said.error_code & ~0xffull) == NGTCP2_CRYPTO_ERROR) {
    const char* const alert = handshakes.alert_name(static_cast<std::uint8_t>(said.error_code & 0xff));
    return Status(Code::kDenied, base::format("QUIC handshake: the peer says '{}'", alert == nullptr ? "?" : alert))
        .with_scope(Scope::kPath);
  }
  return disconnected(base::format("the peer has closed the QUIC connection: error {:#x}{}{}", said.error_code,
                                   reason.empty() ? "" : ", ", base::shown(reason)));
}

std::optional<Status> quiet_reason_of(int error) {
  switch (error) {
    case NGTCP2_ERR_DROP_CONN:
    case NGTCP2_ERR_RETRY:
      return disconnected("the opener's first datagram is no good");
    case NGTCP2_ERR_IDLE_CLOSE:
      return disconnected("nothing came from the peer for the idle timeout");
    case NGTCP2_ERR_HANDSHAKE_TIMEOUT:
      return Status(Code::kTimedOut, "nobody answered the QUIC handshake in time").with_scope(Scope::kPath);
    default:
      return std::nullopt;
  }
}

Status reason_of_alert(std::uint8_t alert, const Handshakes& handshakes) {
  const char* const name = handshakes.alert_name(alert);
  return Status(Code::kDenied, base::format("QUIC handshake: {}", name == nullptr ? "it failed" : name));
}

}  // namespace hawser::backend::quic
