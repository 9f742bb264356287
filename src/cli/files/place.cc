#include "cli/files/place.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/shown.h"

namespace hawser::cli {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

Result<FilePlace> parse_place(std::string_view text, bool has_directory) {
  const std::string_view head = text.substr(0, text.find('/'));
  const std::size_t bracket = head.find(']');
  const std::size_t host_end = head.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (host_end == std::string_view::npos || host_end == 0) {
    return FilePlace{.server = {}, .path = std::string(text)};
  }
  const std::size_t port_end = text.find(':', host_end + 1);
  const std::string_view port =
      text.substr(host_end + 1, port_end == std::string_view::npos ? 0 : port_end - host_end - 1);
  if (port_end != std::string_view::npos && is_number(port.substr(0, port.find('#')))) {  // A ticket may follow it.
    const std::string server(text.substr(0, port_end));
    const bool named = server.find('@') != std::string::npos;
    return FilePlace{.server = named ? server : "@" + server, .path = std::string(text.substr(port_end + 1))};
  }
  if (has_directory) {
    return FilePlace{.server = std::string(text.substr(0, host_end)), .path = std::string(text.substr(host_end + 1))};
  }
  return Status(Code::kInvalid, fmt::format("'{}' names a host without its port", base::shown(text)))
      .with_advice("write host:port:path, or name:path with --directory; a file here whose name holds ':' is ./NAME");
}

}  // namespace hawser::cli
