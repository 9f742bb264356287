#include "compat/vouch.h"

#include <netinet/in.h>
#include <sodium.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/address.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "base/format.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

using Key = std::array<unsigned char, 16>;
static_assert(sizeof(Key) >= crypto_generichash_KEYBYTES_MIN && kVouchBytes == crypto_generichash_BYTES);

void add(crypto_generichash_state& state, std::string_view part) {
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(part.data()), part.size());
}

/// An IPv4-mapped address is IPv4 to the other end.
std::string text_of(const base::SocketAddress& address) {
  if (address.family() != AF_INET6) return base::to_string(address);
  sockaddr_in6 in6;
  std::memcpy(&in6, &address.storage, sizeof in6);
  if (!IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) return base::to_string(address);
  sockaddr_in in = {};
  in.sin_family = AF_INET;
  in.sin_port = in6.sin6_port;
  std::memcpy(&in.sin_addr, in6.sin6_addr.s6_addr + 12, sizeof in.sin_addr);
  return base::format_sockaddr(reinterpret_cast<const sockaddr*>(&in), sizeof in);
}

}  // namespace

Result<Ends> ends_of(int fd, Role mine) {
  base::SocketAddress own, other;
  own.size = other.size = sizeof own.storage;
  if (::getsockname(fd, own.get(), &own.size) != 0 || ::getpeername(fd, other.get(), &other.size) != 0) {
    return base::errno_status(Code::kDisconnected, "metadata by address: the ends of a connection", errno);
  }
  const bool is_asker = mine == Role::kAsker;
  return Ends{.asker = text_of(is_asker ? own : other), .listener = text_of(is_asker ? other : own)};
}

std::string fresh_nonce() {
  const base::Id128 id = base::random_id128();
  std::string nonce;
  base::ByteWriter(&nonce).id(id);
  return nonce;
}

std::string vouch(const base::Id128& cookie, Role who, const Nonces& nonces, const Ends& ends) {
  Key key;
  std::memcpy(key.data(), &cookie.hi, sizeof cookie.hi);
  std::memcpy(key.data() + sizeof cookie.hi, &cookie.lo, sizeof cookie.lo);
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.data(), key.size(), kVouchBytes);
  const char role = static_cast<char>(who);
  add(state, {&role, 1});
  add(state, nonces.listener);
  add(state, nonces.asker);
  add(state, ends.asker);
  add(state, std::string_view("\0", 1));
  add(state, ends.listener);
  std::string proof(kVouchBytes, '\0');
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(proof.data()), proof.size());
  sodium_memzero(key.data(), key.size());
  sodium_memzero(&state, sizeof state);
  return proof;
}

bool is_vouch(std::string_view said, const base::Id128& cookie, Role who, const Nonces& nonces, const Ends& ends) {
  const std::string proof = vouch(cookie, who, nonces, ends);
  return said.size() == proof.size() && sodium_memcmp(said.data(), proof.data(), proof.size()) == 0;
}

}  // namespace compat
HAWSER_NAMESPACE_END
