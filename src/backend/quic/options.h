#pragma once

// QuicOptions: the quic backend's parameters as values.
//
// Thread rule: values.

#include <cstdint>
#include <optional>
#include <string>

#include <hawser/backends.h>
#include <hawser/status.h>

#include "backend/places/listen_choice.h"
#include "backend/quic/connection.h"

namespace hawser::backend::quic {

struct QuicOptions : ListenChoice {
  Security security = Security::kDefault;
  bool has_identity = false;         ///< The agent has an identity by an authority.
  unsigned streams = 4;              ///< Per path: one for small operations, the rest for bulk.
  std::uint64_t small = 16 * 1024;   ///< Chunks up to this size go with the small operations.
  int sndbuf = 0, rcvbuf = 0;        ///< Bytes of a socket; 0: 4 MiB, as far as the system allows.
  std::uint64_t window = 16u << 20;  ///< Bytes that a peer may send ahead of their reader.
  /// UDP bytes of the largest datagram; 0: kNetworkDatagram, and on loopback kLoopbackDatagram.
  std::uint64_t datagram = 0;
  std::string qlog = {};                      ///< The folder for a log of each connection; empty: none.
  std::optional<Congestion> congestion = {};  ///< Nothing: reno on loopback, elsewhere cubic.
  Params params;                              ///< In force.
};

/// What of loopback's 65,536 bytes is used: longer ones cost less each, and overflow the receiver's buffer sooner. The
/// kernel takes two of these in one call.
inline constexpr std::size_t kLoopbackDatagram = 32'752;
/// What fits through networks of 1,500 bytes, over IPv6, too.
inline constexpr std::size_t kNetworkDatagram = 1452;

/// Errors: kInvalid with all wrong values.
Result<QuicOptions> read_quic_options(const Params& params, Security security);

}  // namespace hawser::backend::quic
