#pragma once

// ListenChoice: where a backend of sockets listens, as its parameters `listen` and `port` say it.
//
// Thread rule: values; read_listening asks the kernel for its interfaces.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/agent.h>  // Security
#include <hawser/status.h>

#include "base/address.h"

namespace hawser::backend {

inline constexpr std::string_view kListenDefault = "127.0.0.1,::1";

struct ListenChoice {
  std::vector<base::SocketAddress> listen;  ///< Without a port.
  std::vector<std::string> left_out;        ///< Addresses of this host that the user excluded, with the reason.
  bool listen_given = false;                ///< Each must work; else one is enough.
  std::uint16_t port = 0;                   ///< 0: any.
  std::uint16_t port_last = 0;              ///< The first free one from `port` to this.
  std::vector<std::string> warnings;
};

/// `backend` is named in errors. `listen`: see interfaces.h; `auto`: everywhere where bytes for other hosts are covered
/// (or where `security` is none), else loopback. `beyond_host`: other hosts may be reached at all. Errors: kInvalid,
/// naming what is wrong; kDenied: it would listen beyond the host.
Result<ListenChoice> read_listening(std::string_view backend, std::string listen, std::string_view ports,
                                    bool beyond_host, Security security);

}  // namespace hawser::backend
