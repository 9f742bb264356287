#pragma once

// Listeners: the sockets of a backend at all addresses and the port that its ListenChoice names, and where peers are
// told to find them.
//
// Thread rule: values; they ask the kernel for its interfaces.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/status.h>

#include "backend/places/interfaces.h"
#include "backend/places/listen_choice.h"
#include "backend/places/locator.h"
#include "base/address.h"
#include "base/format.h"
#include "base/host_id.h"
#include "base/try.h"

namespace hawser::backend {

template <typename Socket>
struct Listeners {
  std::vector<Socket> sockets;
  Locator locator;
  std::vector<std::string> warnings;
  std::string chosen;  ///< For the log: where it listens, what peers are told, what was left out.
};

/// Opens a socket at that address, whose port is 0 for any, and writes the port that it got there.
template <typename Socket>
using ListenAt = std::function<Result<Socket>(base::SocketAddress& address)>;

/// All addresses at one port (0: any). The port that the first address gets is that of the others, too, where they have
/// it free and the user named none.
template <typename Socket>
Result<Listeners<Socket>> listen_at_port(std::string_view backend, const ListenChoice& choice, std::uint16_t port,
                                         const ListenAt<Socket>& listen_at) {
  Listeners<Socket> all;
  Status failed;
  const bool asks = std::ranges::any_of(choice.listen, is_wildcard);
  const std::vector<InterfaceAddress> here = asks ? interfaces_here() : std::vector<InterfaceAddress>();
  for (base::SocketAddress address : choice.listen) {
    address.set_port(port);
    Result<Socket> socket = listen_at(address);
    if (!socket && choice.port == 0 && port != 0) {
      address.set_port(0);
      socket = listen_at(address);
    }
    if (!socket) {
      if (choice.listen_given || choice.port != 0) return socket.error();
      failed = socket.error();
      all.warnings.push_back(std::string(failed.message()));
      continue;
    }
    port = address.port();
    all.chosen += (all.chosen.empty() ? "listens at " : ", ") + base::to_string(address);
    if (const std::string beyond = add_places(all.locator, address, here); !beyond.empty()) {
      all.warnings.push_back(too_many_places(backend, beyond));
    }
    all.sockets.push_back(*std::move(socket));
  }
  if (all.sockets.empty()) return failed;
  HAWSER_TRY_ASSIGN(all.locator.host, base::this_host());
  return all;
}

/// At the first port of the choice that is free. `is_covered`: peers are told that it takes TLS only. Errors: kBusy,
/// the ports are in use; those of `listen_at`.
template <typename Socket>
Result<Listeners<Socket>> open_listeners(std::string_view backend, const ListenChoice& choice, bool is_covered,
                                         const ListenAt<Socket>& listen_at) {
  for (std::uint16_t port = choice.port;; ++port) {
    Result<Listeners<Socket>> all = listen_at_port(backend, choice, port, listen_at);
    if (all) {
      all->locator.is_covered = is_covered;
      all->chosen += "; peers are told " + readable(all->locator);
      for (const std::string& one : choice.left_out) all->chosen += "; left out: " + one;
    }
    const bool is_taken = !all && all.error().code() == Code::kBusy;
    if (!is_taken || choice.port == choice.port_last) return all;
    if (port < choice.port_last) continue;
    return Status(Code::kBusy,
                  base::format("{}: all ports from {} to {} are in use", backend, choice.port, choice.port_last))
        .with_advice("choose another range of `port`, or 0 for any that is free");
  }
}

}  // namespace hawser::backend
