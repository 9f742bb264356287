#pragma once

// Route: the two addresses of a UDP datagram, and who sends datagrams.
//
// Thread rule: values.

#include <cstddef>
#include <span>

#include "base/address.h"

namespace hawser::backend::quic {

struct Route {
  base::SocketAddress local;
  base::SocketAddress remote;
};

bool is_same_address(const base::SocketAddress& a, const base::SocketAddress& b);
inline bool is_same_route(const Route& a, const Route& b) {
  return is_same_address(a.local, b.local) && is_same_address(a.remote, b.remote);
}

/// Most bytes, and most datagrams, that one call sends: what the kernel takes for UDP_SEGMENT.
inline constexpr std::size_t kSendBytesMax = 65'504;
inline constexpr std::size_t kSendPacketsMax = 64;

/// A socket, or what a test has for one.
class PacketSender {
 public:
  virtual ~PacketSender() = default;
  /// Datagrams that lie one behind the other, each of `segment` bytes, the last one maybe shorter. False: it would
  /// block, nothing was sent. Datagrams that get lost are of no concern here.
  virtual bool send(const Route& route, std::span<const std::byte> packets, std::size_t segment) = 0;
};

}  // namespace hawser::backend::quic
