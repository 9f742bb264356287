#include "base/secret_text.h"

#include <algorithm>
#include <cstddef>

namespace hawser::base {
namespace {

/// The key is public, and fills 42 characters and a part of the next. The secret comes after it.
constexpr std::size_t kHarmless = 42;

bool is_of_ticket(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

struct TicketPlace {
  std::size_t begin = std::string_view::npos, size = 0;
};

/// The first ticket at `from` or behind it.
TicketPlace find_ticket(std::string_view text, std::size_t from) {
  while ((from = text.find('#', from)) != std::string_view::npos) {
    const auto* const begin = text.data() + ++from;
    const auto* const end = std::find_if_not(begin, text.data() + text.size(), is_of_ticket);
    const auto size = static_cast<std::size_t>(end - begin);
    if (size > kHarmless) return {from, size};
    from += size;
  }
  return {};
}

}  // namespace

std::string without_tickets(std::string text) {
  for (TicketPlace at = find_ticket(text, 0); at.size != 0; at = find_ticket(text, at.begin)) {
    text.replace(at.begin, at.size, "...");
  }
  return text;
}

void overwrite_tickets(char* text) {
  for (TicketPlace at = find_ticket(text, 0); at.size != 0; at = find_ticket(text, at.begin + at.size)) {
    std::fill_n(text + at.begin, at.size, 'x');
  }
}

}  // namespace hawser::base
