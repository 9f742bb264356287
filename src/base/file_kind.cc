#include "base/file_kind.h"

#include <fcntl.h>

#include "base/format.h"
#include "base/shown.h"

namespace hawser::base {

std::string_view file_kind(mode_t mode) {
  if (S_ISREG(mode)) return "a regular file";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISLNK(mode) ? "a symbolic link" : "a device";
}

Status check_file_place(int folder, const std::string& name, std::string_view path) {
  struct stat is {};
  // What cannot be looked at is told by the call that writes there.
  if (::fstatat(folder, name.c_str(), &is, AT_SYMLINK_NOFOLLOW) != 0) return {};
  const bool is_link = S_ISLNK(is.st_mode);
  if (is_link && ::fstatat(folder, name.c_str(), &is, 0) != 0) return {};
  if (S_ISREG(is.st_mode)) return {};
  return Status(Code::kInvalid, base::format("'{}' {} {}, and a file would take its place", base::shown(path),
                                             is_link ? "leads to" : "is", file_kind(is.st_mode)))
      .with_advice("name another target, or remove it first");
}

}  // namespace hawser::base
