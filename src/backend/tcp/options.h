#pragma once

// TcpOptions: the tcp backend's parameters as values.
//
// Thread rule: values.

#include <cstdint>
#include <string>
#include <vector>

#include <hawser/backends.h>
#include <hawser/status.h>

#include "backend/backend.h"
#include "base/address.h"

namespace hawser::backend {

struct TcpOptions {
  std::vector<base::SocketAddress> listen;  ///< Without a port.
  std::vector<std::string> left_out;        ///< Addresses of this host that the user excluded, with the reason.
  bool listen_given = false;                ///< Each must work; else one is enough.
  Security security = Security::kDefault;
  bool beyond_host = false;         ///< Whether peers of other hosts may be reached at all.
  std::uint16_t port = 0;           ///< 0: any.
  std::uint16_t port_last = 0;      ///< The first free one from `port` to this.
  unsigned connections = 3;         ///< Per path: one for small operations, the rest for bulk.
  std::uint64_t small = 16 * 1024;  ///< Chunks up to this size go with the small operations.
  int sndbuf = 0, rcvbuf = 0;       ///< Bytes; 0: the system's own tuning.
  std::uint32_t notsent = 0;        ///< Bytes a socket takes ahead of the network; 0: no limit.
  std::string congestion;           ///< Empty: reno on loopback, elsewhere the system's.
  Params params;                    ///< In force.
  std::vector<std::string> warnings;
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
