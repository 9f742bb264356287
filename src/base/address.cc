#include "base/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>

#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::base {

namespace {

constexpr std::size_t kHostSizeMax = 253;  // of a DNS name

Status wrong(std::string_view text, std::string_view why) {
  return Status(Code::kInvalid, base::format("address '{}': {}", shown(text), why))
      .with_advice("write host:port, 10.0.0.1:5000 or [::1]:5000");
}

// Without the zone after '%', which inet_pton does not know.
bool is_ipv6(std::string_view host) {
  in6_addr address;
  return ::inet_pton(AF_INET6, std::string(host.substr(0, host.find('%'))).c_str(), &address) == 1;
}

bool is_host_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
}

// Names may use underscores: container and service names do.
bool is_name(std::string_view host) {
  return !host.empty() && host.size() <= kHostSizeMax && std::all_of(host.begin(), host.end(), is_host_character);
}

Result<HostPort> parse_bracketed(std::string_view text) {
  const std::size_t close = text.find(']');
  if (close == std::string_view::npos) return wrong(text, "the bracket is not closed");
  const std::string_view host = text.substr(1, close - 1);
  if (!is_ipv6(host)) return wrong(text, "only an IPv6 address goes in brackets");
  if (close + 1 == text.size() || text[close + 1] != ':') return wrong(text, "no port after the bracket");
  const Result<std::uint16_t> port = parse_port(text.substr(close + 2));
  if (!port) return wrong(text, port.error().message());
  return HostPort{std::string(host), *port};
}

template <typename Sockaddr>
Sockaddr view_as(const sockaddr* address) {
  Sockaddr copy{};
  std::memcpy(&copy, address, sizeof(copy));
  return copy;
}

template <typename Sockaddr>
SocketAddress stored(const Sockaddr& address) {
  SocketAddress result;
  std::memcpy(&result.storage, &address, sizeof(address));
  result.size = sizeof(address);
  return result;
}

Result<std::uint32_t> parse_zone(std::string_view zone) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(zone.data(), zone.data() + zone.size(), number);
  if (error == std::errc() && end == zone.data() + zone.size()) return number;
  number = ::if_nametoindex(std::string(zone).c_str());
  if (number == 0) return Status(Code::kNotFound, base::format("no network interface '{}'", shown(zone)));
  return number;
}

std::string format_ipv6(const sockaddr_in6& address) {
  char host[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET6, &address.sin6_addr, host, sizeof(host));
  std::string text(host);
  if (address.sin6_scope_id != 0) {
    char zone[IF_NAMESIZE] = "";
    const bool named = ::if_indextoname(address.sin6_scope_id, zone) != nullptr;
    text += '%';
    text += named ? std::string(zone) : std::to_string(address.sin6_scope_id);
  }
  return to_string(HostPort{text, ntohs(address.sin6_port)});
}

std::string format_unix(const sockaddr* address, socklen_t size) {
  const std::size_t offset = offsetof(sockaddr_un, sun_path);
  if (size <= offset) return "unix:";
  std::string_view path(reinterpret_cast<const char*>(address) + offset, size - offset);
  if (path[0] == '\0') return base::format("unix:@{}", path.substr(1));  // abstract: any bytes, not terminated
  return base::format("unix:{}", path.substr(0, path.find('\0')));
}

}  // namespace

Result<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return Status(Code::kInvalid, base::format("the port '{}' is no number from 0 to 65535", shown(text)));
  }
  return port;
}

Result<HostPort> parse_host_port(std::string_view text) {
  if (text.empty()) return wrong(text, "it is empty");
  if (text.front() == '[') return parse_bracketed(text);
  if (text.find("://") != std::string_view::npos) return wrong(text, "it must not begin with a scheme");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong(text, "it has no port");
  const std::string_view host = text.substr(0, colon);
  if (host.find(':') != std::string_view::npos) {
    return wrong(text, base::format("an IPv6 address needs brackets: [{}]:port", shown(is_ipv6(text) ? text : host)));
  }
  if (host.empty()) return wrong(text, "it has no host; to listen everywhere write 0.0.0.0:port or [::]:port");
  if (!is_name(host)) return wrong(text, "the host has a character that no host name has, or is too long");
  const Result<std::uint16_t> port = parse_port(text.substr(colon + 1));
  if (!port) return wrong(text, port.error().message());
  return HostPort{std::string(host), *port};
}

std::string to_string(const HostPort& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  return brackets ? base::format("[{}]:{}", address.host, address.port)
                  : base::format("{}:{}", address.host, address.port);
}

std::uint16_t SocketAddress::port() const {
  if (family() == AF_INET) return ntohs(view_as<sockaddr_in>(get()).sin_port);
  if (family() == AF_INET6) return ntohs(view_as<sockaddr_in6>(get()).sin6_port);
  return 0;
}

void SocketAddress::set_port(std::uint16_t port) {
  // Both families have it in the same place, and the storage is large enough for either.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  if (family() != AF_INET && family() != AF_INET6) return;
  const std::uint16_t network = htons(port);
  std::memcpy(reinterpret_cast<char*>(&storage) + offsetof(sockaddr_in, sin_port), &network, sizeof(network));
}

Result<SocketAddress> numeric_address(const HostPort& address) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(address.port);
  if (::inet_pton(AF_INET, address.host.c_str(), &v4.sin_addr) == 1) return stored(v4);

  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(address.port);
  const std::size_t percent = address.host.find('%');
  if (::inet_pton(AF_INET6, address.host.substr(0, percent).c_str(), &v6.sin6_addr) != 1) {
    return Status(Code::kInvalid, base::format("'{}' is a name, not an address in numbers", address.host));
  }
  if (percent != std::string::npos) {
    HAWSER_TRY_ASSIGN(v6.sin6_scope_id, parse_zone(std::string_view(address.host).substr(percent + 1)));
  }
  return stored(v6);
}

bool is_numeric_host(const std::string& host) {
  in_addr v4;
  return ::inet_pton(AF_INET, host.c_str(), &v4) == 1 || is_ipv6(host);
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_UNIX) return true;
  if (address->sa_family == AF_INET) return ntohl(view_as<sockaddr_in>(address).sin_addr.s_addr) >> 24 == 127;
  if (address->sa_family != AF_INET6) return false;
  const in6_addr v6 = view_as<sockaddr_in6>(address).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) return v6.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&v6);
}

std::string to_string(const SocketAddress& address) { return format_sockaddr(address.get(), address.size); }

std::string format_sockaddr(const sockaddr* address, socklen_t size) {
  if (size < sizeof(sa_family_t)) return "no address";
  const int family = address->sa_family;
  if (family == AF_INET && size >= sizeof(sockaddr_in)) {
    const auto v4 = view_as<sockaddr_in>(address);
    char host[INET_ADDRSTRLEN] = "";
    ::inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
    return to_string(HostPort{host, ntohs(v4.sin_port)});
  }
  if (family == AF_INET6 && size >= sizeof(sockaddr_in6)) return format_ipv6(view_as<sockaddr_in6>(address));
  if (family == AF_UNIX) return format_unix(address, size);
  return base::format("family {}", family);
}

}  // namespace hawser::base
