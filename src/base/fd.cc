#include "base/fd.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/format.h"

namespace hawser::base {

namespace {

Status no_descriptors(std::string_view what) {
  rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return Status(Code::kBusy,
                base::format("{}: all descriptors of this process are in use, RLIMIT_NOFILE = {} (errno {})", what,
                             limit.rlim_cur, EMFILE))
      .with_scope(Scope::kAgent)
      .with_advice("raise the limit (`ulimit -n`), or close what is not needed");
}

Status set_flag(int fd, int read, int write, int flag, bool on) {
  const int before = ::fcntl(fd, read);
  if (before < 0) return errno_status("fcntl", errno);
  const int after = on ? before | flag : before & ~flag;
  if (after != before && ::fcntl(fd, write, after) < 0) return errno_status("fcntl", errno);
  return Status();
}

}  // namespace

void Fd::reset(int fd) {
  const int old = std::exchange(fd_, fd);
  if (old < 0 || old == fd) return;
  const int saved = errno;
  ::close(old);  // never retried: after EINTR the number is already free on Linux
  errno = saved;
}

Result<Fd> Fd::duplicate() const {
  const int copy = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return errno_status("duplicate a descriptor", errno);
  return Fd(copy);
}

Status set_cloexec(int fd, bool on) { return set_flag(fd, F_GETFD, F_SETFD, FD_CLOEXEC, on); }
Status set_nonblocking(int fd, bool on) { return set_flag(fd, F_GETFL, F_SETFL, O_NONBLOCK, on); }

Status errno_status(Code code, std::string_view what, int error) {
  // A shortage of this process or system, whatever it kept from being done: another code would blame somebody else.
  if (error == EMFILE) return no_descriptors(what);
  if (error == ENFILE) {
    return Status(Code::kBusy, base::format("{}: the system's limit for open files, fs.file-max, is reached (errno {})",
                                            what, error))
        .with_scope(Scope::kAgent)
        .with_advice("close what is not needed, or raise it: sysctl fs.file-max");
  }
  return Status(code, base::format("{}: {} (errno {})", what, std::generic_category().message(error), error));
}
Status errno_status(std::string_view what, int error) { return errno_status(code_of_errno(error), what, error); }

Code code_of_errno(int error) {
  switch (error) {
    case EINVAL:
    case EBADF:
    case EFAULT:
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
    case E2BIG:
    case ERANGE:
      return Code::kInvalid;
    case ENOENT:
    case ENODEV:
    case ENXIO:
    case ESRCH:
      return Code::kNotFound;
    case ENOSYS:
    case EOPNOTSUPP:
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
    case ENOPROTOOPT:
    case ENOTTY:
      return Code::kUnsupported;
    case EAGAIN:
    case ENOBUFS:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EBUSY:
    case ENOSPC:
    case EDQUOT:
      return Code::kBusy;
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case ENOTCONN:
    case ESHUTDOWN:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
    case ENETRESET:
      return Code::kDisconnected;
    case ETIMEDOUT:
      return Code::kTimedOut;
    case ECANCELED:
      return Code::kCancelled;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::kDenied;
    default:
      return Code::kFailed;
  }
}

}  // namespace hawser::base
