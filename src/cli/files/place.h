#pragma once

// An argument of `hawser cp`: it names a file here, or one at a server.

#include <string>
#include <string_view>

#include <hawser/status.h>

namespace hawser::cli {

struct FilePlace {
  std::string server;  ///< As find_peer takes it: "name@host:port", or a name in a directory. Empty: here.
  std::string path;
  bool is_remote() const { return !server.empty(); }
};

/// "[name@]host:port:path", or "[name@]host:port#TICKET:path" on another host, or "name:path" where there is a
/// directory; else a path here. A colon after the first slash belongs to a path, so "./a:b" is always here.
Result<FilePlace> parse_place(std::string_view text, bool has_directory);

}  // namespace hawser::cli
