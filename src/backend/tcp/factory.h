#pragma once

// The tcp backend: works everywhere. The remote-memory protocol of backend/stream over sockets.
//
// Parameters: listen (addresses in numbers, by commas; 127.0.0.1 and ::1), port (0: any), connections, small, sndbuf,
// rcvbuf, notsent, congestion. NOTES.md tells how the defaults were found.
//
// Thread rule: pure functions.

#include <string>
#include <string_view>

#include <hawser/status.h>
#include <hawser/time.h>

#include "backend/backend.h"

namespace hawser::backend {

Factory tcp_factory();

/// "host:port", as a user typed it, as an address that Port::open_path takes: all that the name stands for, in numbers.
/// Blocks for at most `patience` when a name server has to be asked: not for turns. Errors: kInvalid (not host:port),
/// kNotFound (no such host), kTimedOut.
Result<std::string> resolve_tcp_address(std::string_view typed, Duration patience);

}  // namespace hawser::backend
