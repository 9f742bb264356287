#include "backend/adopted/write_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "base/format.h"
#include "base/try.h"

// Newer than some systems' headers.
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace hawser::backend {
namespace {

constexpr std::uint64_t kProtects = 1u << 0;            // UFFD_FEATURE_PAGEFAULT_FLAG_WP, Linux 5.7
constexpr std::uint64_t kProtectsShared = 1u << 12;     // UFFD_FEATURE_WP_HUGETLBFS_SHMEM, Linux 5.19
constexpr std::uint64_t kProtectsUntouched = 1u << 13;  // UFFD_FEATURE_WP_UNPOPULATED, Linux 6.4

Status lack(std::string_view call, int error) {
  return base::errno_status(Code::kUnsupported, call, error)
      .with_advice("use Linux 5.19 or newer, and allow the system call userfaultfd");
}

/// For threads alone: what any process may have, unless the call as such is filtered.
base::Fd open_for_threads() {
  return base::Fd(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY)));
}

/// For system calls, too: a process with CAP_SYS_PTRACE, or vm.unprivileged_userfaultfd, or the rights of the device.
base::Fd open_for_all() {
  base::Fd fd(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC)));
  if (fd) return fd;
  const base::Fd device(::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
  return device ? base::Fd(::ioctl(device.get(), USERFAULTFD_IOC_NEW, O_CLOEXEC)) : base::Fd();
}

uffdio_range range_of(AddressRange pages) { return {.start = pages.begin, .len = pages.size()}; }

/// 0 or an error.
int try_protect(int fd, AddressRange pages) {
  uffdio_writeprotect held{.range = range_of(pages), .mode = UFFDIO_WRITEPROTECT_MODE_WP};
  constexpr int kTries = 10'000;
  for (int i = 0; i < kTries && ::ioctl(fd, UFFDIO_WRITEPROTECT, &held) != 0; ++i) {
    if (errno != EAGAIN || i + 1 == kTries) return errno;  // EAGAIN: mappings just changed.
  }
  return 0;
}

Status protect(int fd, AddressRange pages) {
  int error = try_protect(fd, pages);
  if (error == ENOENT) {  // Up to Linux 6.1 one call takes one mapping.
    HAWSER_TRY_ASSIGN(const auto areas, mapped_areas(pages, AreaDetail::kPlain));
    error = areas.empty() ? ENOENT : 0;
    for (std::size_t i = 0; i < areas.size() && error == 0; ++i) error = try_protect(fd, areas[i].range);
  }
  return error == 0 ? Status() : lack("protecting pages with userfaultfd", error);
}

}  // namespace

Result<WriteGuard> WriteGuard::make() {
  base::Fd fd = open_for_all();
  if (!fd) return make_for_threads_only();
  WriteGuard made(std::move(fd), true);
  HAWSER_TRY(made.agree());
  return made;
}

Result<WriteGuard> WriteGuard::make_for_threads_only() {
  base::Fd fd = open_for_threads();
  if (!fd) return lack("userfaultfd", errno);
  WriteGuard made(std::move(fd), false);
  HAWSER_TRY(made.agree());
  return made;
}

Status WriteGuard::agree() {
  // The kernel refuses what it does not know as a whole.
  for (const std::uint64_t more : {kProtectsUntouched, std::uint64_t{0}}) {
    uffdio_api asked{.api = UFFD_API, .features = kProtects | kProtectsShared | more, .ioctls = 0};
    if (::ioctl(fd_.get(), UFFDIO_API, &asked) == 0) return {};
  }
  return lack("write protection by userfaultfd", errno);
}

WriteGuard::Window::Window(const WriteGuard* guard, AddressRange pages) : guard_(guard), pages_(pages) {
  if (guard_ == nullptr) return;
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &signals_before_);
  status_ = hold();
}

Status WriteGuard::Window::hold() {
  const int fd = guard_->fd_.get();
  uffdio_register wanted{.range = range_of(pages_), .mode = UFFDIO_REGISTER_MODE_WP, .ioctls = 0};
  if (::ioctl(fd, UFFDIO_REGISTER, &wanted) != 0) return lack("watching pages with userfaultfd", errno);
  // Before Linux 6.4 only what is there can be protected, so all of it has to be. Later this saves nothing and costs
  // little: the bytes are read next.
  if (::madvise(pages_.data(), pages_.size(), MADV_POPULATE_READ) != 0) return lack("reading pages in", errno);
  return protect(fd, pages_);
}

WriteGuard::Window::~Window() {
  if (guard_ == nullptr) return;
  // Where pages were put in place of those that were held there is nothing to unregister; who waited is woken anyhow.
  uffdio_range range = range_of(pages_);
  ::ioctl(guard_->fd_.get(), UFFDIO_UNREGISTER, &range);
  ::ioctl(guard_->fd_.get(), UFFDIO_WAKE, &range);
  ::pthread_sigmask(SIG_SETMASK, &signals_before_, nullptr);
}

}  // namespace hawser::backend
