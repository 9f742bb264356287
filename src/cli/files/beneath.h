#pragma once

// Opening what lies beneath a folder and nothing else: each part of a path is opened from the one before, and symbolic
// links are not followed, so no path of a peer leads out of the folder.
//
// Thread rule: any thread. Blocks as file systems do.

#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

#include "base/fd.h"

namespace hawser::cli {

/// "a/b/c" as its parts. As everywhere, "." and what lies between two slashes name nothing: "./a//b/." is "a/b"; "" and
/// "." are the folder. kDenied for an absolute path, ".." and zero bytes.
Result<std::vector<std::string>> parts_of(std::string_view path);
/// For names that a peer chose: kDenied unless `path` is that of something in the folder, spelled by its parts alone.
Status check_listed_path(std::string_view path);

struct Beneath {
  base::Fd folder;   ///< In which `name` lies.
  std::string name;  ///< "." for the folder itself.
};
/// The folder that holds `path`; folders on the way are made if `make` says so.
Result<Beneath> find_beneath(int root, std::string_view path, bool make);
/// open() of the path itself; `flags` and `mode` as there. With O_PATH, nothing that lies there notices.
Result<base::Fd> open_beneath(int root, std::string_view path, int flags, unsigned mode = 0666);

}  // namespace hawser::cli
