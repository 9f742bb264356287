#pragma once

// What lies at a place of a file system, and whether a file may take that place. rename() replaces a FIFO, a socket
// or a device as it replaces a file: `--output /dev/null` would end every other user of /dev/null.
//
// Thread rule: any thread. Blocks as file systems do; opens nothing.

#include <sys/stat.h>

#include <string>
#include <string_view>

#include <hawser/status.h>

namespace hawser::base {

/// "a regular file", "a folder", "a FIFO", "a socket", "a device" or "a symbolic link".
std::string_view file_kind(mode_t mode);

/// A file may be renamed to `name` in `folder` (AT_FDCWD: `name` is a path): nothing lies there, or a regular file, or
/// a link that leads to one or nowhere; the link itself is replaced then. kInvalid says what else lies there. `path`
/// is for the text.
Status check_file_place(int folder, const std::string& name, std::string_view path);

}  // namespace hawser::base
