#include "cli/wrap.h"

#include <algorithm>

namespace hawser::cli {
namespace {

/// No line goes on further to the right than this share of it.
constexpr std::size_t kIndentShare = 2;

std::size_t indent_of(std::string_view line, std::size_t columns) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.substr(0, columns).rfind("  ");
  if (gap == std::string_view::npos) return begin;
  const std::size_t column = std::min(line.find_first_not_of(' ', gap), line.size());
  return column > columns / kIndentShare ? begin : column;
}

void wrap_line(std::string_view line, std::size_t columns, std::string& out) {
  const std::size_t indent = indent_of(line, columns);
  std::size_t text_at = std::max(indent, line.find_first_not_of(' '));  // Blanks before it are no place to fold.
  std::size_t room = columns;
  while (line.size() > room) {
    std::size_t blank = line.rfind(' ', room);
    if (blank == std::string_view::npos || blank <= text_at) blank = line.find(' ', std::max(room, text_at));
    if (blank == std::string_view::npos) break;
    out.append(line.substr(0, line.find_last_not_of(' ', blank) + 1)).append("\n").append(indent, ' ');
    line.remove_prefix(blank + 1);
    room = columns - indent;
    text_at = 0;
  }
  out.append(line);
}

}  // namespace

std::string wrap(std::string_view text, std::size_t columns) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    wrap_line(text.substr(0, end), columns, out);
    if (end == text.size()) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace hawser::cli
