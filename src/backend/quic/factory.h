#pragma once

// The quic backend: the remote-memory protocol of backend/stream over QUIC (RFC 9000), always encrypted and proven by
// both ends. Not among those that are open by default: it is asked for by name.
//
// Parameters: listen, port (as tcp's), streams, small, sndbuf, rcvbuf, window, datagram, congestion: docs/quic.md.
//
// Thread rule: any thread.

#include <string>

#include "backend/backend.h"

namespace hawser::backend {

Factory quic_factory();

/// The version of ngtcp2 that the backend uses here. Errors: kUnsupported (none, or one of another series).
Result<std::string> quic_library();

}  // namespace hawser::backend
