#include "cli/files/beneath.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/shown.h"
#include "base/try.h"

namespace hawser::cli {
namespace {

Status refused(std::string_view path, int error) {
  if (error == ELOOP) {
    return Status(Code::kDenied, fmt::format("'{}' leads over a symbolic link", base::shown(path)))
        .with_advice("symbolic links are not followed; name the file itself");
  }
  return base::errno_status(fmt::format("'{}'", base::shown(path)), error);
}

}  // namespace

Result<std::vector<std::string>> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  const auto denied = [&] {
    return Status(Code::kDenied, fmt::format("'{}' is no path beneath the served folder", base::shown(path)))
        .with_advice("give a relative path without '..'");
  };
  if (path.starts_with('/') || path.find('\0') != std::string_view::npos) return denied();
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part == "..") return denied();
    if (!part.empty() && part != ".") parts.emplace_back(part);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  return parts;
}

Status check_listed_path(std::string_view path) {
  HAWSER_TRY_ASSIGN(const std::vector<std::string> parts, parts_of(path));
  if (!parts.empty() && fmt::format("{}", fmt::join(parts, "/")) == path) return {};
  return Status(Code::kDenied, fmt::format("'{}' is no path of a file in a folder", base::shown(path)));
}

Result<Beneath> find_beneath(int root, std::string_view path, bool make) {
  HAWSER_TRY_ASSIGN(const std::vector<std::string> parts, parts_of(path));
  Beneath at{.folder = base::Fd(::fcntl(root, F_DUPFD_CLOEXEC, 0)), .name = "."};
  if (!at.folder) return refused(path, errno);
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    constexpr mode_t kMode = 0777;
    if (make && ::mkdirat(at.folder.get(), parts[i].c_str(), kMode) != 0 && errno != EEXIST)
      return refused(path, errno);
    base::Fd next(::openat(at.folder.get(), parts[i].c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    // A link to a folder is told as "not a directory".
    struct stat is {};
    if (!next && errno == ENOTDIR && ::fstatat(at.folder.get(), parts[i].c_str(), &is, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(is.st_mode)) {
      return refused(path, ELOOP);
    }
    if (!next) return refused(path, errno);
    at.folder = std::move(next);
  }
  if (!parts.empty()) at.name = parts.back();
  return at;
}

Result<base::Fd> open_beneath(int root, std::string_view path, int flags, unsigned mode) {
  HAWSER_TRY_ASSIGN(const Beneath at, find_beneath(root, path, false));
  base::Fd fd(::openat(at.folder.get(), at.name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode));
  if (!fd) return refused(path, errno);
  struct stat is {};
  if ((flags & O_PATH) != 0 && ::fstat(fd.get(), &is) == 0 && S_ISLNK(is.st_mode)) return refused(path, ELOOP);
  return fd;
}

}  // namespace hawser::cli
