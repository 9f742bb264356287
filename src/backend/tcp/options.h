#pragma once

// TcpOptions: the tcp backend's parameters as values.
//
// Thread rule: values.

#include <cstdint>
#include <string>

#include <hawser/backends.h>
#include <hawser/status.h>

#include "backend/backend.h"
#include "backend/places/listen_choice.h"

namespace hawser::backend {

struct TcpOptions : ListenChoice {
  Security security = Security::kDefault;
  bool beyond_host = false;         ///< Whether peers of other hosts may be reached at all.
  unsigned connections = 3;         ///< Per path: one for small operations, the rest for bulk.
  std::uint64_t small = 16 * 1024;  ///< Chunks up to this size go with the small operations.
  int sndbuf = 0, rcvbuf = 0;       ///< Bytes; 0: the system's own tuning.
  std::uint32_t notsent = 0;        ///< Bytes a socket takes ahead of the network; 0: no limit.
  std::string congestion;           ///< Empty: reno on loopback, elsewhere the system's.
  Params params;                    ///< In force.
};

/// Whose bytes are carried.
enum class Carries : std::uint8_t {
  kAll,      ///< All bytes go by these sockets, so TLS covers them.
  kControl,  ///< Another backend's, which carries bulk in clear: RDMA.
};

/// Errors: kInvalid with all wrong values; kDenied when asked to listen beyond this host for bytes in clear, and
/// `security` forbids that.
Result<TcpOptions> read_tcp_options(const Params& params, Security security, Carries carries);

}  // namespace hawser::backend
