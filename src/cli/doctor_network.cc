// Checks of sockets: unix and loopback ones tried, buffers, congestion control, names. See doctor_checks.h.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#ifdef HAWSER_WITH_QUIC
#include "backend/quic/factory.h"
#endif
#include "base/address.h"
#include "base/far_end.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/quantity.h"
#include "cli/doctor_checks.h"
#include "cli/system_limits.h"
#include "cli/units.h"
#include "identity/files.h"
#include "identity/unix_time.h"
#include "metrics/http_library.h"
#include "tls/gnutls_library.h"

namespace hawser::cli {
namespace {

constexpr std::uint64_t kBufferMin = 4u << 20;

std::string socket_folder() {
  for (const char* name : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && value[0] != '\0') return value;
  }
  return "/tmp";
}

Finding unix_sockets() {
  const std::string folder = socket_folder();
  const std::string path = fmt::format("{}/hawser-doctor-{}", folder, getpid());
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const base::Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int error = path.size() < sizeof(address.sun_path) ? 0 : ENAMETOOLONG;
  if (error == 0) {
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) error = errno;
    unlink(path.c_str());
  }
  return {"network.unix", error == 0 ? Verdict::kOk : Verdict::kFail,
          error == 0 ? fmt::format("sockets can be made in {}", folder)
                     : fmt::format("no socket can be made in {}: {}", folder, std::strerror(error)),
          "agents on one host prove to each other over a unix socket that they share it",
          error == 0 ? "" : "export TMPDIR=/a/short/folder/you/may/write"};
}

// 0, or why a connection over this family's loopback fails.
int try_loopback(const char* host) {
  auto address = base::numeric_address({host, 0});
  if (!address) return EAFNOSUPPORT;
  const base::Fd listener(socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const base::Fd client(socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener || !client) return errno;
  if (bind(listener.get(), address->get(), address->size) != 0 || listen(listener.get(), 1) != 0) return errno;
  if (getsockname(listener.get(), address->get(), &address->size) != 0) return errno;
  return connect(client.get(), address->get(), address->size) == 0 ? 0 : errno;
}

Finding loopback(const char* name, const char* host, Verdict when_missing) {
  const int error = try_loopback(host);
  return {name, error == 0 ? Verdict::kOk : when_missing,
          error == 0 ? fmt::format("{} answers", host) : fmt::format("{}: {}", host, std::strerror(error)),
          "tcp between agents of one host, and the first thing to work before any network can",
          error == 0 ? "" : "sudo ip link set lo up   (IPv6: sudo sysctl net.ipv6.conf.lo.disable_ipv6=0)"};
}

/// The other end of a loopback connection of our own.
base::FarEnd ask_for_owner() {
  auto address = base::numeric_address({"127.0.0.1", 0});
  const base::Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const base::Fd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!address || !listener || !client || bind(listener.get(), address->get(), address->size) != 0 ||
      listen(listener.get(), 1) != 0 || getsockname(listener.get(), address->get(), &address->size) != 0 ||
      connect(client.get(), address->get(), address->size) != 0) {
    return base::FarEnd::kCannotAsk;
  }
  const base::Fd accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  return base::far_end_of(accepted.get());
}

Finding socket_owners() {
  const bool good = ask_for_owner() == base::FarEnd::kSameUser;
  return {
      "network.owners", good ? Verdict::kOk : Verdict::kWarn,
      good ? "the kernel tells which user owns a connection" : "the kernel does not tell which user owns a connection",
      "an agent lets in processes of its own user over loopback; without this a file that only the user can read "
      "proves it",
      good ? "" : "allow socket(AF_NETLINK, ..., NETLINK_SOCK_DIAG); modprobe tcp_diag; do not run as user nobody"};
}

Finding security() {
  const char* value = std::getenv("HAWSER_SECURITY");
  const bool is_open = value != nullptr && base::equal_ignoring_case(value, "none");
  return {"network.security", is_open ? Verdict::kWarn : Verdict::kOk,
          is_open ? "HAWSER_SECURITY=none: everybody who can reach an agent's port gets its card and all its memory"
                  : "who has an agent's card or ticket, or is the same user on this host, may connect",
          "at other levels tcp to other hosts is TLS, and each end proves who it is",
          is_open ? "unset HAWSER_SECURITY   (unless each host and user on this network may be trusted)" : ""};
}

constexpr const char* kInstallGnutls = "sudo apt-get install libgnutls30   (Fedora, RHEL: sudo dnf install gnutls)";

Finding encryption() {
  const auto library = tls::gnutls();
  return {"network.tls", library ? Verdict::kOk : Verdict::kWarn,
          library ? "GnuTLS " + (*library)->version : library.error().to_string(),
          "without it an agent reaches no other host, unless its security is none", library ? "" : kInstallGnutls};
}

/// Good either way: nobody has the backend quic who did not ask for it.
Finding quic() {
#ifdef HAWSER_WITH_QUIC
  const auto library = backend::quic_library();
  const std::string found = library ? "ngtcp2 " + *library : library.error().to_string();
#ifdef HAWSER_NGTCP2_BUNDLED
  const char* const install = kInstallGnutls;
#else
  const char* const install = "sudo apt-get install " HAWSER_NGTCP2_PACKAGES "   (" HAWSER_NGTCP2_SYSTEM ")";
#endif
  const char* const remedy = library ? "" : install;
#else
  const std::string found = "this build has no QUIC";
  const char* const remedy = "";
#endif
  return {"network.quic", Verdict::kOk, found,
          "the backend quic, for who asks for it by name; tcp is encrypted between hosts without it", remedy};
}

/// This check reads the variable alone. The check `backend` opens an agent by the whole configuration.
void identity_here(Findings& findings) {
  const char* folder = std::getenv("HAWSER_IDENTITY");
  if (folder == nullptr || *folder == '\0') return;
  const auto snapshot = identity::IdentityFiles(folder).read();
  const Status status = snapshot ? snapshot->trust->verify(snapshot->credential->chain()).status() : snapshot.error();
  const std::string what = status.ok() ? base::format("{} until {}", snapshot->credential->holder().id.text(),
                                                      identity::time_text(snapshot->credential->holder().ends))
                                       : status.to_string();
  findings.push_back({"network.identity", status.ok() ? Verdict::kOk : Verdict::kFail, what,
                      "with an identity an agent reaches others of its domain, and is reached by them only",
                      std::string(status.advice())});
}

Finding metrics_server() {
  const auto library = metrics::http_library();
  return {"network.metrics", library ? Verdict::kOk : Verdict::kWarn,
          library ? "libmicrohttpd" : library.error().to_string(),
          "it serves an agent's figures for Prometheus where HAWSER_METRICS asks for them",
          library ? "" : "sudo apt-get install libmicrohttpd12   (Fedora, RHEL: sudo dnf install libmicrohttpd)"};
}

Finding buffers() {
  const std::uint64_t send = read_number("/proc/sys/net/core/wmem_max").value_or(0);
  const std::uint64_t receive = read_number("/proc/sys/net/core/rmem_max").value_or(0);
  const bool good = std::min(send, receive) >= kBufferMin;
  return {"network.buffers", good ? Verdict::kOk : Verdict::kWarn,
          fmt::format("wmem_max {}, rmem_max {}", short_size(send), short_size(receive)),
          "fast links with a long round trip need as much in flight as a socket's buffer holds",
          good ? "" : "sudo sysctl net.core.wmem_max=16777216 net.core.rmem_max=16777216"};
}

Finding congestion() {
  const std::string allowed = read_file("/proc/sys/net/ipv4/tcp_allowed_congestion_control").value_or("");
  const std::string chosen = read_file("/proc/sys/net/ipv4/tcp_congestion_control").value_or("unknown");
  const bool good = allowed.find("cubic") != std::string::npos || allowed.find("reno") != std::string::npos;
  return {"network.congestion", good ? Verdict::kOk : Verdict::kWarn, fmt::format("{}; allowed: {}", chosen, allowed),
          "bbr paces, which halves loopback; tcp chooses cubic or reno there, if it may",
          good ? "" : "sudo sysctl net.ipv4.tcp_allowed_congestion_control='reno cubic bbr'"};
}

Finding port_range() {
  std::istringstream words(read_file("/proc/sys/net/ipv4/ip_local_port_range").value_or(""));
  std::uint64_t first = 0, last = 0;
  words >> first >> last;
  const bool good = last >= first + 8192;
  return {"network.ports", good ? Verdict::kOk : Verdict::kWarn, fmt::format("{} to {} for connections", first, last),
          "each connection takes one; Hawser keeps its connections, other programs may leave ports in TIME_WAIT",
          good ? "" : "sudo sysctl net.ipv4.ip_local_port_range='32768 60999'"};
}

// Addresses that peers on other hosts could use.
std::string routable_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "";
  std::string text;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || base::is_loopback(entry->ifa_addr)) continue;
    std::array<char, NI_MAXHOST> host = {};
    const bool v4 = entry->ifa_addr->sa_family == AF_INET;
    if (!v4 && entry->ifa_addr->sa_family != AF_INET6) continue;
    const socklen_t size = v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(entry->ifa_addr, size, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) continue;
    if (std::string_view(host.data()).starts_with("fe80")) continue;  // link-local: of no use without its link
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", host.data(), entry->ifa_name);
  }
  freeifaddrs(list);
  return text;
}

Finding addresses() {
  const std::string found = routable_addresses();
  return {"network.addresses", found.empty() ? Verdict::kWarn : Verdict::kOk, found.empty() ? "loopback only" : found,
          "peers on other hosts reach this one by these; loopback must never be told to them",
          found.empty() ? "ip address   (then connect an interface, or stay on this host)" : ""};
}

}  // namespace

void check_network(Findings& findings) {
  findings.push_back(unix_sockets());
  findings.push_back(loopback("network.loopback4", "127.0.0.1", Verdict::kFail));
  findings.push_back(loopback("network.loopback6", "::1", Verdict::kWarn));
  findings.push_back(socket_owners());
  findings.push_back(security());
  findings.push_back(encryption());
  findings.push_back(quic());
  identity_here(findings);
  findings.push_back(metrics_server());
  findings.push_back(buffers());
  findings.push_back(congestion());
  findings.push_back(port_range());
  findings.push_back(addresses());
}

}  // namespace hawser::cli
