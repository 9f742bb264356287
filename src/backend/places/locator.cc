#include "backend/places/locator.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::backend {
namespace {

constexpr std::size_t kHostDigits = 16;
/// In front of the address of an agent that takes TLS only.
constexpr std::string_view kCovered = "tls+";
/// Of a text that claims to be a locator.
constexpr std::size_t kTextMax = 4096;

}  // namespace

std::string readable(const Locator& locator) {
  std::string text;
  for (const base::SocketAddress& place : locator.places) {
    text += (text.empty() ? "" : ", ") + base::to_string(place);
  }
  return text;
}

std::string to_string(const Locator& locator) {
  std::string text(locator.is_covered ? kCovered : "");
  if (locator.host != 0) text += base::format("{:016x}@", locator.host);
  for (std::size_t i = 0; i < locator.places.size(); ++i) {
    text += (i == 0 ? "" : ",") + base::to_string(locator.places[i]);
  }
  return text;
}

Result<Locator> parse_locator(std::string_view text) {
  Locator locator;
  if (text.size() > kTextMax) return Status(Code::kInvalid, "an address of more than 4 KiB");
  if (text.starts_with(kCovered)) {
    locator.is_covered = true;
    text.remove_prefix(kCovered.size());
  }
  if (const std::size_t at = text.find('@'); at != std::string_view::npos) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + at, locator.host, 16);
    if (error != std::errc() || at != kHostDigits || end != text.data() + at) {
      return Status(Code::kInvalid, base::format("address '{}': no host id before the '@'", base::shown(text)));
    }
    text.remove_prefix(at + 1);
  }
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    HAWSER_TRY_ASSIGN(const base::HostPort place, base::parse_host_port(text.substr(0, comma)));
    HAWSER_TRY_ASSIGN(const base::SocketAddress address, base::numeric_address(place));
    if (address.port() == 0) return Status(Code::kInvalid, base::format("address '{}' has port 0", base::shown(text)));
    if (locator.places.size() == kPlacesMax) return Status(Code::kInvalid, "an address of more than 64 places");
    locator.places.push_back(address);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  if (locator.places.empty()) return Status(Code::kInvalid, "an address without a place");
  return locator;
}

Result<std::vector<base::SocketAddress>> places_from(const Locator& locator, std::uint64_t here, bool beyond_host) {
  std::vector<base::SocketAddress> near, far;
  for (const base::SocketAddress& place : locator.places) {
    if (!base::is_loopback(place)) {
      far.push_back(place);
    } else if (locator.host == 0 || locator.host == here) {
      near.push_back(place);
    }
  }
  if (beyond_host) near.insert(near.end(), far.begin(), far.end());
  if (!near.empty()) return near;
  if (far.empty()) {
    return Status(Code::kUnsupported,
                  base::format("it listens on loopback of its own host or container only ({})", readable(locator)))
        .with_advice("set, where the peer runs, HAWSER_LISTEN=ADDRESS (the parameter `listen`)");
  }
  return Status(Code::kDenied,
                base::format("{} is beyond this host, where RDMA carries bytes in clear", readable(locator)))
      .with_advice("on a network that nobody listens to set security to `authenticate` (HAWSER_SECURITY=authenticate)");
}

std::string left_out_from(const Locator& locator, std::uint64_t here) {
  if (locator.host == 0 || locator.host == here) return {};
  std::string text;
  for (const base::SocketAddress& place : locator.places) {
    if (!base::is_loopback(place)) continue;
    text += base::format("{}{}", text.empty() ? "" : ", ", base::to_string(place));
  }
  return text.empty() ? text : text + " (loopback of another host)";
}

std::vector<base::SocketAddress> places_of(const base::SocketAddress& bound,
                                           const std::vector<InterfaceAddress>& here) {
  if (!is_wildcard(bound)) return {bound};
  std::vector<base::SocketAddress> places;
  for (const InterfaceAddress& one : here) {
    if (one.address.family() != bound.family()) continue;
    places.push_back(one.address);
    places.back().set_port(bound.port());
  }
  return places;
}

std::string add_places(Locator& locator, const base::SocketAddress& bound, const std::vector<InterfaceAddress>& here) {
  std::string beyond;
  for (const base::SocketAddress& place : places_of(bound, here)) {
    if (locator.places.size() < kPlacesMax) {
      locator.places.push_back(place);
    } else {
      beyond += (beyond.empty() ? "" : ", ") + base::to_string(place);
    }
  }
  return beyond;
}

std::string too_many_places(std::string_view backend, std::string_view beyond) {
  return base::format("{}: peers are told {} places at most; not told are {} (name interfaces or networks in `listen`)",
                      backend, kPlacesMax, beyond);
}

}  // namespace hawser::backend
