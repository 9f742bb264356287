#pragma once

// Interfaces: the addresses of this host's network stack, which of them a user chose to listen at, and how near a
// peer's address is.
//
// Thread rule: values and pure functions; interfaces_here asks the kernel.

#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

#include "base/address.h"

namespace hawser::backend {

/// One address of one interface that is up. Link-local addresses are left out: they mean nothing at a peer without the
/// interface, which has another name there.
struct InterfaceAddress {
  std::string interface;
  base::SocketAddress address;  ///< Port 0.
  unsigned prefix = 0;          ///< Bits of its network.
  /// A bridge with no device of the machine behind it, as docker0: its network is in no other host, though others may
  /// have one with the same addresses.
  bool is_inner = false;
};

/// Those that peers are most likely to reach first; inner bridges and loopback last.
std::vector<InterfaceAddress> interfaces_here();

/// Whether the first `prefix` bits of both are equal. False for addresses of two families.
bool is_in_network(const base::SocketAddress& address, const base::SocketAddress& network, unsigned prefix);
bool is_wildcard(const base::SocketAddress& address);
/// Equal but for the port.
bool is_same_host_address(const base::SocketAddress& a, const base::SocketAddress& b);

/// Where to listen, as a user says it: items with commas between them.
///   10.0.0.1, ::1, [::1]   this address; 0.0.0.0 and :: mean all of their family
///   10.0.0.0/8, fd00::/8   each address of this host in that network
///   eth0, ib*              each address of that interface; a name may end in *
///   ^docker0, ^172.16.0.0/12, ^10.0.0.1   not these; alone: all others
/// Errors: kInvalid, naming the item and what there is.
struct Listening {
  std::vector<base::SocketAddress> addresses;  ///< To bind, without a port; wildcards only where nothing is excluded.
  std::vector<std::string> left_out;           ///< "172.17.0.1 (docker0: ^docker0)".
};
Result<Listening> choose_listening(std::string_view text, const std::vector<InterfaceAddress>& here);
/// Whether choose_listening looks at `here` at all.
bool asks_interfaces(std::string_view text);

/// Puts places of another host in the order in which to try them. First those in a network that this host is in, then
/// those elsewhere, then networks of inner bridges, and last addresses that this host has, too.
void sort_by_nearness(std::vector<base::SocketAddress>& places, const std::vector<InterfaceAddress>& here);

}  // namespace hawser::backend
