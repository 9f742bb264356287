#include "identity/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/fd.h"
#include "base/file_kind.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::identity {
namespace {

Status write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return base::errno_status("writing " + path, errno);
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

}  // namespace

Status write_whole_file(const std::string& path, std::string_view text, std::optional<mode_t> mode) {
  HAWSER_TRY(base::check_file_place(AT_FDCWD, path, path));
  const std::string part = base::format("{}.part-{}", path, ::getpid());
  const base::Fd fd(::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode.value_or(0666)));
  if (!fd) return base::errno_status("writing " + part, errno);
  Status status = write_all(fd.get(), text, part);
  const auto keep = [&] { return (!mode || ::fchmod(fd.get(), *mode) == 0) && ::fsync(fd.get()) == 0; };
  if (status.ok() && !keep()) {
    status = base::errno_status("writing " + part, errno);
  }
  if (status.ok() && std::rename(part.c_str(), path.c_str()) != 0)
    status = base::errno_status("writing " + path, errno);
  if (!status.ok()) ::unlink(part.c_str());
  return status;
}

Result<std::string> read_whole_file(const std::string& path, std::size_t bytes_max) {
  const base::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return base::errno_status("reading " + path, errno);
  struct stat facts = {};
  if (::fstat(fd.get(), &facts) != 0) return base::errno_status("reading " + path, errno);
  if (!S_ISREG(facts.st_mode)) return Status(Code::kInvalid, path + " is no regular file");
  std::string text(bytes_max + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::errno_status("reading " + path, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > bytes_max) return Status(Code::kInvalid, base::format("{} has more than {} bytes", path, bytes_max));
  text.resize(size);
  return text;
}

}  // namespace hawser::identity
