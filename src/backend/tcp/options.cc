#include "backend/tcp/options.h"

#include "backend/params.h"
#include "backend/stream/stream.h"
#include "backend/tcp/interfaces.h"
#include "base/format.h"
#include "base/quantity.h"
#include "base/try.h"
#include "tls/gnutls_library.h"

namespace hawser::backend {
namespace {

constexpr std::string_view kListenDefault = "127.0.0.1,::1";
constexpr std::string_view kListenAuto = "auto";
constexpr std::string_view kEverywhere = "0.0.0.0,::";
constexpr std::uint64_t kBufferMax = 1u << 30;

/// "0", "7000" or "7000-7100".
Status parse_ports(std::string_view text, TcpOptions& options) {
  const std::size_t dash = text.find('-');
  const auto first = base::parse_count(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : base::parse_count(text.substr(dash + 1));
  const bool is_range = dash != std::string_view::npos;
  if (!first || !last || *last > UINT16_MAX || *first > *last || (is_range && *first == 0)) {
    return Status(Code::kInvalid, base::format("tcp: port = '{}' is no port and no range of ports", text))
        .with_advice("write 7000, or 7000-7100 for the first free one of these, or 0 for any");
  }
  options.port = static_cast<std::uint16_t>(*first);
  options.port_last = static_cast<std::uint16_t>(*last);
  return {};
}

Status check_allowed(const TcpOptions& options) {
  for (const base::SocketAddress& address : options.listen) {
    if (base::is_loopback(address) || options.beyond_host) continue;
    base::SocketAddress shown = address;
    shown.set_port(options.port);
    return Status(Code::kDenied, base::format("listening on {} would let RDMA carry bytes to other hosts in clear",
                                              base::to_string(shown)))
        .with_advice(
            "on a network that nobody listens to set the agent's security to `authenticate` "
            "(HAWSER_SECURITY=authenticate); else leave out `listen`");
  }
  return Status();
}

/// What `auto` means: everywhere where bytes for other hosts are covered, or where nobody wants that; else loopback.
std::string_view where_allowed(const TcpOptions& options, std::vector<std::string>& warnings) {
  if (!options.beyond_host) return kListenDefault;
  if (options.security == Security::kNone) return kEverywhere;
  const auto library = tls::gnutls();
  if (library) return kEverywhere;
  warnings.push_back("tcp: listens on loopback only, so peers of other hosts cannot connect: " +
                     library.error().to_string());
  return kListenDefault;
}

}  // namespace

Result<TcpOptions> read_tcp_options(const Params& params, Security security, Carries carries) {
  TcpOptions options;
  ParamReader read("tcp", params);
  std::string listen = read.text("listen", kListenDefault);
  const std::string ports = read.text("port", "0");
  options.connections =
      static_cast<unsigned>(read.count("connections", options.connections, {.min = 1, .max = stream::kStreamsMax}));
  options.small = read.size("small", options.small, {.min = 0, .max = 1 << 20});
  options.sndbuf = static_cast<int>(read.size("sndbuf", 0, {.min = 0, .max = kBufferMax}));
  options.rcvbuf = static_cast<int>(read.size("rcvbuf", 0, {.min = 0, .max = kBufferMax}));
  options.notsent = static_cast<std::uint32_t>(read.size("notsent", options.notsent, {.min = 0, .max = kBufferMax}));
  options.congestion = read.text("congestion", "");
  HAWSER_TRY(read.finish());
  options.listen_given = listen != kListenDefault && listen != kListenAuto;
  options.security = security;
  options.beyond_host = carries == Carries::kAll || security == Security::kNone || security == Security::kAuthenticate;
  std::vector<std::string> warnings;
  if (listen == kListenAuto) listen = where_allowed(options, warnings);
  const bool asks = asks_interfaces(listen);
  HAWSER_TRY_ASSIGN(Listening chosen,
                    choose_listening(listen, asks ? interfaces_here() : std::vector<InterfaceAddress>()));
  options.listen = std::move(chosen.addresses);
  options.left_out = std::move(chosen.left_out);
  HAWSER_TRY(parse_ports(ports, options));
  HAWSER_TRY(check_allowed(options));
  options.params = read.in_force();
  options.warnings = read.warnings();
  options.warnings.insert(options.warnings.end(), warnings.begin(), warnings.end());
  return options;
}

}  // namespace hawser::backend
