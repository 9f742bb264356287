#include "base/listen_text.h"

#include <algorithm>

#include "base/quantity.h"

namespace hawser::base {
namespace {

struct Item {
  std::string_view place, ports;
  bool has_ports = false;
};

/// With a bracket, all up to the closing one is the place; else what stands before the only colon, for a place with
/// several is an IPv6 address.
std::optional<Item> split_item(std::string_view text) {
  Item item{.place = text};
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos || (end + 1 < text.size() && text[end + 1] != ':')) return std::nullopt;
    item.place = text.substr(1, end - 1);
    item.has_ports = end + 1 < text.size();
    if (item.has_ports) item.ports = text.substr(end + 2);
  } else if (std::ranges::count(text, ':') == 1) {
    item.place = text.substr(0, text.find(':'));
    item.has_ports = true;
    item.ports = text.substr(item.place.size() + 1);
  }
  const bool is_number = !item.ports.empty() && item.ports.find_first_not_of("0123456789-") == std::string_view::npos;
  if (item.place.empty() || (item.has_ports && !is_number)) return std::nullopt;
  return item;
}

}  // namespace

std::optional<ListenText> split_listen(std::string_view text) {
  ListenText whole;
  text = trim(text);
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view typed = trim(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const bool excludes = typed.starts_with('^');
    const std::optional<Item> item = split_item(typed.substr(excludes ? 1 : 0));
    if (!item) return std::nullopt;
    whole.places.append(whole.places.empty() ? "" : ",").append(excludes ? "^" : "").append(item->place);
    if (!item->has_ports) continue;
    if (!whole.ports.empty() && whole.ports != item->ports) return std::nullopt;
    whole.ports = std::string(item->ports);
  }
  return whole;
}

}  // namespace hawser::base
