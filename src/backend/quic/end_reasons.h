#pragma once

// Why a connection ended, as a Status: from what the peer said, and from ngtcp2's errors.
//
// Thread rule: pure functions.

#include <cstdint>
#include <optional>
#include <string>

#include <hawser/status.h>

#include "backend/quic/handshake_end.h"
#include "backend/quic/ngtcp2_library.h"

namespace hawser::backend::quic {

/// Codes that both ends know, of connections and streams.
inline constexpr std::uint64_t kCodeOrderly = 0;
inline constexpr std::uint64_t kCodeAborted = 1;
inline constexpr std::uint64_t kCodeStill = 2;

Status disconnected(std::string text);
/// Good: both wanted it.
Status reason_of(const CloseError& said, const Handshakes& handshakes);
/// Why it ended, where this end says nothing to the peer after that error of ngtcp2. Nothing: the peer has to hear why.
std::optional<Status> quiet_reason_of(int error);
/// This end's handshake failed with that alert.
Status reason_of_alert(std::uint8_t alert, const Handshakes& handshakes);

}  // namespace hawser::backend::quic
