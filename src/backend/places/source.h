#pragma once

// The number of a connection's source, by which connections of strangers are counted (backend/stream/lobby.h).
//
// Thread rule: a pure function.

#include <cstdint>

#include "base/address.h"

namespace hawser::backend {

/// All of loopback is one source, because every process of this host owns all its addresses. So are the 2^64 addresses
/// of IPv6 that share their upper half: one owner has them all.
std::uint64_t source_of(const base::SocketAddress& peer);

}  // namespace hawser::backend
