#pragma once

// HostPort and SocketAddress: addresses as text and as the kernel wants them. Nothing here asks a name server; names
// are resolved elsewhere, by what may block.
//
// Thread rule: values and pure functions.

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include <hawser/status.h>

namespace hawser::base {

/// A host, by name or number, without brackets, and a port.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;

  friend bool operator==(const HostPort&, const HostPort&) = default;
};

/// "host:5000", "10.0.0.1:5000", "[::1]:5000", "[fe80::1%eth0]:5000". The error says how to write it.
Result<HostPort> parse_host_port(std::string_view text);
/// Brackets where the host has colons.
std::string to_string(const HostPort& address);
/// 0 to 65535 in digits only.
Result<std::uint16_t> parse_port(std::string_view text);

/// An address of any family with its length.
struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  /// 0 where the family has none.
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
};

/// From a host in numbers; kInvalid for a name.
Result<SocketAddress> numeric_address(const HostPort& address);
bool is_numeric_host(const std::string& host);

/// 127.0.0.0/8, ::1, ::ffff:127.0.0.0/104 and unix sockets. Not "any": 0.0.0.0 is reached from elsewhere.
bool is_loopback(const sockaddr* address);
inline bool is_loopback(const SocketAddress& address) { return is_loopback(address.get()); }

/// "10.0.0.1:5000", "[::1]:5000", "unix:/path", "unix:@abstract", else "family 17".
std::string to_string(const SocketAddress& address);
std::string format_sockaddr(const sockaddr* address, socklen_t size);

}  // namespace hawser::base
