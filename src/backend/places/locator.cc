#include "backend/places/locator.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/fd.h"
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

std::uint64_t mix(std::uint64_t hash, std::string_view bytes) {  // FNV-1a
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace

Result<std::uint64_t> this_host() {
  std::array<char, 256> text;
  std::uint64_t hash = 0xcbf29ce484222325U;
  const base::Fd boot(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (!boot && (errno == EMFILE || errno == ENFILE)) {  // Without it the host would look like another one.
    return base::errno_status("tcp: reading /proc/sys/kernel/random/boot_id", errno);
  }
  ssize_t size = boot ? ::read(boot.get(), text.data(), text.size()) : -1;
  if (size > 0) hash = mix(hash, {text.data(), static_cast<std::size_t>(size)});
  size = ::readlink("/proc/self/ns/net", text.data(), text.size());
  if (size > 0) hash = mix(hash, {text.data(), static_cast<std::size_t>(size)});
  return hash == 0 ? 1 : hash;
}

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
