#include "backend/places/source.h"

#include <netinet/in.h>

#include <cstring>

namespace hawser::backend {

std::uint64_t source_of(const base::SocketAddress& peer) {
  constexpr std::uint64_t kLoopback = 1;
  if (base::is_loopback(peer)) return kLoopback;
  std::uint64_t source = 0;
  if (peer.family() == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &peer.storage, sizeof in);
    source = in.sin_addr.s_addr;
  } else {
    sockaddr_in6 in6;
    std::memcpy(&in6, &peer.storage, sizeof in6);
    std::memcpy(&source, &in6.sin6_addr, sizeof source);
  }
  return source + kLoopback + 1;
}

}  // namespace hawser::backend
