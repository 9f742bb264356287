#include "backend/places/listen_choice.h"

#include <utility>

#include "backend/places/interfaces.h"
#include "base/format.h"
#include "base/quantity.h"
#include "base/try.h"
#include "tls/gnutls_library.h"

namespace hawser::backend {
namespace {

constexpr std::string_view kListenAuto = "auto";
constexpr std::string_view kEverywhere = "0.0.0.0,::";

/// "0", "7000" or "7000-7100".
Status parse_ports(std::string_view text, std::string_view backend, ListenChoice& options) {
  const std::size_t dash = text.find('-');
  const auto first = base::parse_count(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : base::parse_count(text.substr(dash + 1));
  const bool is_range = dash != std::string_view::npos;
  if (!first || !last || *last > UINT16_MAX || *first > *last || (is_range && *first == 0)) {
    return Status(Code::kInvalid, base::format("{}: port = '{}' is no port and no range of ports", backend, text))
        .with_advice("write 7000, or 7000-7100 for the first free one of these, or 0 for any");
  }
  options.port = static_cast<std::uint16_t>(*first);
  options.port_last = static_cast<std::uint16_t>(*last);
  return {};
}

Status check_allowed(const ListenChoice& options, bool beyond_host) {
  for (const base::SocketAddress& address : options.listen) {
    if (base::is_loopback(address) || beyond_host) continue;
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
std::string_view where_allowed(std::string_view backend, bool beyond_host, Security security,
                               std::vector<std::string>& warnings) {
  if (!beyond_host) return kListenDefault;
  if (security == Security::kNone) return kEverywhere;
  const auto library = tls::gnutls();
  if (library) return kEverywhere;
  warnings.push_back(base::format("{}: listens on loopback only, so peers of other hosts cannot connect: {}", backend,
                                  library.error().to_string()));
  return kListenDefault;
}

}  // namespace

Result<ListenChoice> read_listening(std::string_view backend, std::string listen, std::string_view ports,
                                    bool beyond_host, Security security) {
  ListenChoice choice;
  choice.listen_given = listen != kListenDefault && listen != kListenAuto;
  if (listen == kListenAuto) listen = where_allowed(backend, beyond_host, security, choice.warnings);
  const bool asks = asks_interfaces(listen);
  HAWSER_TRY_ASSIGN(Listening chosen,
                    choose_listening(listen, asks ? interfaces_here() : std::vector<InterfaceAddress>()));
  choice.listen = std::move(chosen.addresses);
  choice.left_out = std::move(chosen.left_out);
  HAWSER_TRY(parse_ports(ports, backend, choice));
  HAWSER_TRY(check_allowed(choice, beyond_host));
  return choice;
}

}  // namespace hawser::backend
