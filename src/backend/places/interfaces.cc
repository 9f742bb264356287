#include "backend/places/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <span>

#include "base/format.h"
#include "base/quantity.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::backend {
namespace {

/// The address in network order; empty for other families.
std::span<const unsigned char> bytes_of(const base::SocketAddress& address) {
  const auto* storage = reinterpret_cast<const unsigned char*>(&address.storage);
  if (address.family() == AF_INET) return {storage + offsetof(sockaddr_in, sin_addr), 4};
  if (address.family() == AF_INET6) return {storage + offsetof(sockaddr_in6, sin6_addr), 16};
  return {};
}

socklen_t size_of(int family) { return family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6); }

bool is_link_local(const base::SocketAddress& address) {
  const auto bytes = bytes_of(address);
  return address.family() == AF_INET6 && bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

unsigned prefix_of(const sockaddr* mask, int family) {
  base::SocketAddress copy;
  copy.size = size_of(family);
  if (mask != nullptr) std::memcpy(&copy.storage, mask, copy.size);
  copy.storage.ss_family = static_cast<sa_family_t>(family);  // The kernel leaves it out of some masks.
  unsigned bits = 0;
  for (const unsigned char byte : bytes_of(copy)) bits += static_cast<unsigned>(std::popcount(byte));
  return bits;
}

/// A bridge whose ports are no devices of the machine.
bool is_inner_bridge(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path base = fs::path("/sys/class/net") / name;
  if (!fs::exists(base / "bridge", ignored)) return false;
  for (const auto& port : fs::directory_iterator(base / "brif", ignored)) {
    if (fs::exists(fs::path("/sys/class/net") / port.path().filename() / "device", ignored)) return false;
  }
  return true;
}

std::string host_of(base::SocketAddress address) {
  address.set_port(0);
  std::string text = base::to_string(address);
  text.resize(text.rfind(':'));
  return text;
}

struct Item {
  bool excludes = false;
  std::string text;             ///< As typed, without '^'.
  base::SocketAddress address;  ///< Of an address or a network; else its size is 0.
  unsigned prefix = 0;
  bool is_network = false;

  bool is_name() const { return address.size == 0; }
  bool covers(const InterfaceAddress& one) const {
    if (!is_name()) return is_in_network(one.address, address, prefix);
    if (text.ends_with('*')) return one.interface.starts_with(std::string_view(text).substr(0, text.size() - 1));
    return one.interface == text;
  }
};

Status wrong_item(std::string_view item, std::string_view why) {
  return Status(Code::kInvalid, base::format("listen = '{}': {}", base::shown(item), why))
      .with_advice(
          "write an address in numbers (10.0.0.1, ::1; 0.0.0.0 and :: mean all), a network (10.0.0.0/8) or an "
          "interface "
          "(eth0), several by commas; '^' before one excludes it (^docker0)");
}

bool is_interface_name(std::string_view name) {
  if (name.ends_with('*')) name.remove_suffix(1);
  return !name.empty() && name.size() < IF_NAMESIZE &&
         std::ranges::none_of(name, [](char c) { return c <= ' ' || c == '/' || c == ':' || c == '*' || c == '^'; });
}

Result<Item> parse_item(std::string_view typed) {
  Item item{.excludes = typed.starts_with('^')};
  std::string_view text = typed.substr(item.excludes ? 1 : 0);
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  item.text = std::string(text);
  const std::size_t slash = text.find('/');
  auto address = base::numeric_address({.host = std::string(text.substr(0, slash)), .port = 0});
  if (!address) {
    if (slash == std::string_view::npos && is_interface_name(text)) return item;
    return wrong_item(typed, "it is no address, network or interface");
  }
  item.address = *address;
  const unsigned bits = static_cast<unsigned>(bytes_of(*address).size() * 8);
  item.prefix = bits;
  if (slash == std::string_view::npos) return item;
  const auto prefix = base::parse_count(text.substr(slash + 1));
  if (!prefix || *prefix > bits) return wrong_item(typed, base::format("the number after '/' is not 0 to {}", bits));
  item.prefix = static_cast<unsigned>(*prefix);
  item.is_network = true;
  return item;
}

Result<std::vector<Item>> parse_items(std::string_view text) {
  std::vector<Item> items;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view one = base::trim(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    HAWSER_TRY_ASSIGN(Item item, parse_item(one));
    items.push_back(std::move(item));
  }
  if (items.empty()) return Status(Code::kInvalid, "listen names no address");
  return items;
}

std::string list_of(const std::vector<InterfaceAddress>& here) {
  std::string text;
  for (const InterfaceAddress& one : here) {
    text += base::format("{}{} {}/{}", text.empty() ? "" : ", ", one.interface, host_of(one.address), one.prefix);
  }
  return text.empty() ? "none" : text;
}

class Chooser {
 public:
  Chooser(std::vector<Item> items, const std::vector<InterfaceAddress>& here) : items_(std::move(items)), here_(here) {}

  Result<Listening> make() {
    const bool only_excludes = std::ranges::all_of(items_, &Item::excludes);
    if (only_excludes) {
      for (const InterfaceAddress& one : here_) take(one);
    }
    for (const Item& item : items_) {
      if (!item.excludes) HAWSER_TRY(include(item));
    }
    if (!listening_.addresses.empty()) return std::move(listening_);
    return wrong_item(items_.front().text,
                      base::format("nothing is left to listen at; this host has {}", list_of(here_)));
  }

 private:
  const Item* exclusion_of(const InterfaceAddress& one) const {
    const auto found =
        std::ranges::find_if(items_, [&](const Item& item) { return item.excludes && item.covers(one); });
    return found == items_.end() ? nullptr : &*found;
  }
  bool has_exclusions() const { return std::ranges::any_of(items_, &Item::excludes); }

  void add(const base::SocketAddress& address) {
    const auto is_it = [&](const auto& other) { return is_same_host_address(other, address); };
    if (std::ranges::none_of(listening_.addresses, is_it)) listening_.addresses.push_back(address);
  }

  void take(const InterfaceAddress& one) {
    const Item* exclusion = exclusion_of(one);
    if (exclusion == nullptr) return add(one.address);
    std::string note = base::format("{} ({}: ^{})", host_of(one.address), one.interface, exclusion->text);
    if (std::ranges::find(listening_.left_out, note) == listening_.left_out.end()) {
      listening_.left_out.push_back(std::move(note));
    }
  }

  Status include(const Item& item) {
    const bool is_all = !item.is_name() && !item.is_network && is_wildcard(item.address);
    if (is_all && has_exclusions()) {
      for (const InterfaceAddress& one : here_) {
        if (one.address.family() == item.address.family()) take(one);
      }
      return {};
    }
    if (!item.is_name() && !item.is_network) {
      const InterfaceAddress named{.interface = {}, .address = item.address};
      const auto known = std::ranges::find_if(
          here_, [&](const InterfaceAddress& one) { return is_same_host_address(one.address, item.address); });
      take(known != here_.end() ? *known : named);
      return {};
    }
    bool is_there = false;
    for (const InterfaceAddress& one : here_) {
      if (!item.covers(one)) continue;
      is_there = true;
      take(one);
    }
    if (is_there) return {};
    return wrong_item(item.text,
                      base::format("no interface that is up has such an address; this host has {}", list_of(here_)));
  }

  const std::vector<Item> items_;
  const std::vector<InterfaceAddress>& here_;
  Listening listening_;
};

enum Nearness { kShared, kElsewhere, kInner, kOwn };

Nearness nearness_of(const base::SocketAddress& place, const std::vector<InterfaceAddress>& here) {
  Nearness nearest = kElsewhere;
  for (const InterfaceAddress& one : here) {
    if (is_same_host_address(place, one.address)) return kOwn;
    if (base::is_loopback(one.address) || !is_in_network(place, one.address, one.prefix)) continue;
    nearest = one.is_inner ? kInner : kShared;
  }
  return nearest;
}

}  // namespace

std::vector<InterfaceAddress> interfaces_here() {
  std::vector<InterfaceAddress> all;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return all;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const int family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    InterfaceAddress one{.interface = at->ifa_name};
    one.address.size = size_of(family);
    std::memcpy(&one.address.storage, at->ifa_addr, one.address.size);
    if (is_link_local(one.address)) continue;
    one.prefix = prefix_of(at->ifa_netmask, family);
    one.is_inner = is_inner_bridge(one.interface);
    all.push_back(std::move(one));
  }
  ::freeifaddrs(list);
  std::ranges::stable_sort(all, {}, [](const InterfaceAddress& one) {
    return base::is_loopback(one.address) ? 2 : one.is_inner ? 1 : 0;
  });
  return all;
}

bool is_in_network(const base::SocketAddress& address, const base::SocketAddress& network, unsigned prefix) {
  const auto a = bytes_of(address), b = bytes_of(network);
  if (address.family() != network.family() || a.empty() || prefix > a.size() * 8) return false;
  if (!std::equal(a.begin(), a.begin() + prefix / 8, b.begin())) return false;
  const unsigned rest = prefix % 8;
  return rest == 0 || (a[prefix / 8] ^ b[prefix / 8]) >> (8 - rest) == 0;
}

bool is_wildcard(const base::SocketAddress& address) {
  return std::ranges::all_of(bytes_of(address), [](unsigned char byte) { return byte == 0; });
}

bool is_same_host_address(const base::SocketAddress& a, const base::SocketAddress& b) {
  return a.family() == b.family() && std::ranges::equal(bytes_of(a), bytes_of(b));
}

Result<Listening> choose_listening(std::string_view text, const std::vector<InterfaceAddress>& here) {
  HAWSER_TRY_ASSIGN(std::vector<Item> items, parse_items(text));
  return Chooser(std::move(items), here).make();
}

bool asks_interfaces(std::string_view text) {
  const auto items = parse_items(text);
  return items && std::ranges::any_of(
                      *items, [](const Item& item) { return item.excludes || item.is_name() || item.is_network; });
}

void sort_by_nearness(std::vector<base::SocketAddress>& places, const std::vector<InterfaceAddress>& here) {
  std::ranges::stable_sort(places, {}, [&](const base::SocketAddress& place) { return nearness_of(place, here); });
}

}  // namespace hawser::backend
