#include "base/user_cookie.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::base {
namespace {

constexpr const char* kName = "cookie";

Status denied(const std::string& what, std::string_view why) {
  return Status(Code::kDenied, base::format("'{}' cannot hold the user's cookie: {}", what, why))
      .with_advice("remove it; it must belong to this user, and be closed to others");
}

Status check_owner(const struct stat& status, const std::string& what) {
  if (status.st_uid != ::geteuid()) return denied(what, base::format("it belongs to user {}", status.st_uid));
  if ((status.st_mode & 077) != 0) return denied(what, "others may read it");
  return {};
}

/// The folder by its descriptor, so that it cannot be replaced between the check and the use.
Result<Fd> open_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return errno_status(base::format("making '{}'", folder), errno);
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return errno_status(Code::kDenied, base::format("opening '{}'", folder), errno);
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) return errno_status(base::format("looking at '{}'", folder), errno);
  HAWSER_TRY(check_owner(status, folder));
  return fd;
}

/// Zero: there is none.
Result<Id128> read_cookie(int folder, const std::string& path) {
  const Fd fd(::openat(folder, kName, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd && errno == ENOENT) return Id128{};
  if (!fd) return errno_status(Code::kDenied, base::format("opening '{}'", path), errno);
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) return errno_status(base::format("looking at '{}'", path), errno);
  if (!S_ISREG(status.st_mode)) return denied(path, "it is no file");
  HAWSER_TRY(check_owner(status, path));
  std::array<std::uint64_t, 2> words = {};
  if (status.st_size != sizeof words || ::read(fd.get(), words.data(), sizeof words) != sizeof words) {
    return denied(path, "it is not 16 bytes long");
  }
  const Id128 cookie = {words[0], words[1]};
  if (cookie.is_zero()) return denied(path, "it is all zeros");
  return cookie;
}

/// Whole from the moment it has its name; whoever comes second reads the first one's.
Status make_cookie(int folder, const std::string& path) {
  const Id128 cookie = random_id128();
  const std::string fresh = base::format("{}.{}", kName, to_hex(random_id128()));
  const std::array<std::uint64_t, 2> words = {cookie.hi, cookie.lo};
  const Fd fd(::openat(folder, fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return errno_status(base::format("making '{}'", path), errno);
  const bool is_written = ::write(fd.get(), words.data(), sizeof words) == sizeof words;
  const bool is_linked = is_written && (::linkat(folder, fresh.c_str(), folder, kName, 0) == 0 || errno == EEXIST);
  const int error = errno;
  ::unlinkat(folder, fresh.c_str(), 0);
  return is_linked ? Status() : errno_status(base::format("making '{}'", path), error);
}

}  // namespace

Result<Id128> user_cookie_in(const std::string& folder) {
  const std::string path = folder + "/" + kName;
  HAWSER_TRY_ASSIGN(const Fd fd, open_folder(folder));
  HAWSER_TRY_ASSIGN(Id128 cookie, read_cookie(fd.get(), path));
  if (!cookie.is_zero()) return cookie;
  HAWSER_TRY(make_cookie(fd.get(), path));
  HAWSER_TRY_ASSIGN(cookie, read_cookie(fd.get(), path));
  if (cookie.is_zero()) return denied(path, "it vanished while it was made");
  return cookie;
}

Result<Id128> user_cookie() {
  // By the user alone, not by the environment: two processes of one user must come to the same file.
  const std::array folders = {base::format("/run/user/{}/hawser", ::geteuid()),
                              base::format("/tmp/hawser-{}", ::geteuid())};
  Status failures;
  for (const std::string& folder : folders) {
    Result<Id128> cookie = user_cookie_in(folder);
    if (cookie) return cookie;
    failures = failures.ok() ? cookie.error() : failures.because(cookie.error());
  }
  return failures;
}

}  // namespace hawser::base
