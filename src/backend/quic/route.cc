#include "backend/quic/route.h"

#include <netinet/in.h>

#include <cstring>

namespace hawser::backend::quic {
namespace {

template <typename T>
T as(const base::SocketAddress& address) {
  T value;
  std::memcpy(&value, &address.storage, sizeof value);
  return value;
}

}  // namespace

bool is_same_address(const base::SocketAddress& a, const base::SocketAddress& b) {
  if (a.family() != b.family() || a.port() != b.port()) return false;
  if (a.family() == AF_INET) return as<sockaddr_in>(a).sin_addr.s_addr == as<sockaddr_in>(b).sin_addr.s_addr;
  const auto one = as<sockaddr_in6>(a), other = as<sockaddr_in6>(b);
  return std::memcmp(&one.sin6_addr, &other.sin6_addr, sizeof one.sin6_addr) == 0 &&
         one.sin6_scope_id == other.sin6_scope_id;
}

}  // namespace hawser::backend::quic
