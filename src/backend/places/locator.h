#pragma once

// Locator: where an agent can be reached over tcp, as its card tells it.
//
// Grammar: locator = ["tls+"] [host-id "@"] place ("," place)*; place is an address in numbers with a port
// ("10.0.0.1:5000", "[::1]:5000"). "tls+": the agent takes TLS only, on loopback, too. The host id, 16 hexadecimal
// digits, names one network stack (boot and network namespace): loopback places mean something there only. What a user
// typed has none.
//
// Thread rule: values and pure functions.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

#include "backend/places/interfaces.h"
#include "base/address.h"

namespace hawser::backend {

struct Locator {
  bool is_covered = false;  ///< It takes TLS only.
  std::uint64_t host = 0;   ///< 0: not told.
  std::vector<base::SocketAddress> places;
};

/// Most places in one locator. With the longest addresses that is 3 KiB of the 4 KiB of an address in a card.
inline constexpr std::size_t kPlacesMax = 64;

std::string to_string(const Locator& locator);
/// "127.0.0.1:5000, [::1]:5000".
std::string readable(const Locator& locator);
Result<Locator> parse_locator(std::string_view text);

/// The places worth trying from host `here`, in order: loopback where it is the same, then the others. Errors:
/// kUnsupported (it listens for its own host only), kDenied (other hosts may not be reached).
Result<std::vector<base::SocketAddress>> places_from(const Locator& locator, std::uint64_t here, bool beyond_host);

/// The loopback places that places_from leaves out, for people: "127.0.0.1:5000 (loopback of another host)"; or empty.
std::string left_out_from(const Locator& locator, std::uint64_t here);

/// The places that a socket bound to `bound` can be reached at: itself, or, for a wildcard, each address of this host
/// in the order of `here`.
std::vector<base::SocketAddress> places_of(const base::SocketAddress& bound, const std::vector<InterfaceAddress>& here);

/// Adds the places of a listener bound to `bound`, as far as there is room. Returns those for which there is none, for
/// people; mostly empty.
std::string add_places(Locator& locator, const base::SocketAddress& bound, const std::vector<InterfaceAddress>& here);
/// What a backend warns of when add_places left something.
std::string too_many_places(std::string_view backend, std::string_view beyond);

}  // namespace hawser::backend
