#include "base/events.h"

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>

#include "base/check.h"

namespace hawser::base {

namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr std::int64_t kNsPerMs = 1'000'000;
// The kernel's limit on one wait's seconds; 2^31 s is 68 years.
constexpr std::int64_t kSecondsMax = INT_MAX;
constexpr std::size_t kEventsMax = 4096;

#if !defined(SYS_epoll_pwait2)
#define SYS_epoll_pwait2 441  // the same on every architecture
#endif

int wait_precisely(int fd, epoll_event* events, int count, Duration timeout) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(std::min<std::int64_t>(timeout.count() / kNsPerSecond, kSecondsMax));
  time.tv_nsec = static_cast<long>(timeout.count() % kNsPerSecond);
  const timespec* until = timeout == Duration::max() ? nullptr : &time;
  return static_cast<int>(::syscall(SYS_epoll_pwait2, fd, events, count, until, nullptr, 0));
}

int wait_coarsely(int fd, epoll_event* events, int count, Duration timeout) {
  const std::int64_t ns = timeout.count();
  const std::int64_t ms = ns / kNsPerMs + (ns % kNsPerMs != 0 ? 1 : 0);
  return ::epoll_wait(fd, events, count,
                      timeout == Duration::max() ? -1 : static_cast<int>(std::min<std::int64_t>(ms, INT_MAX)));
}

Status control(int epoll, int operation, int fd, std::uint32_t events, std::uint64_t cookie) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = cookie;
  if (::epoll_ctl(epoll, operation, fd, &event) == 0) return Status();
  return errno_status("epoll_ctl", errno);
}

}  // namespace

Result<EventFd> EventFd::open() {
  Fd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd) return errno_status("eventfd", errno);
  return EventFd(std::move(fd));
}

void EventFd::signal() const {
  const std::uint64_t one = 1;
  ssize_t put = 0;
  do {
    put = ::write(fd_.get(), &one, sizeof(one));
  } while (put < 0 && errno == EINTR);
}

bool EventFd::drain() const {
  std::uint64_t count = 0;
  ssize_t got = 0;
  do {
    got = ::read(fd_.get(), &count, sizeof(count));
  } while (got < 0 && errno == EINTR);
  return got == sizeof(count) && count != 0;
}

Result<Epoll> Epoll::open() {
  Fd fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!fd) return errno_status("epoll_create1", errno);
  return Epoll(std::move(fd));
}

Status Epoll::add(int fd, std::uint32_t events, std::uint64_t cookie) const {
  return control(fd_.get(), EPOLL_CTL_ADD, fd, events, cookie);
}
Status Epoll::modify(int fd, std::uint32_t events, std::uint64_t cookie) const {
  return control(fd_.get(), EPOLL_CTL_MOD, fd, events, cookie);
}
Status Epoll::remove(int fd) const { return control(fd_.get(), EPOLL_CTL_DEL, fd, 0, 0); }

Result<std::size_t> Epoll::wait(std::span<epoll_event> events, Duration timeout) const {
  HAWSER_ASSERT(!events.empty(), "an epoll wait needs room for an event");
  const Duration bounded = std::max(timeout, Duration(0));
  const int room = static_cast<int>(std::min(events.size(), kEventsMax));
  int count = wait_precisely(fd_.get(), events.data(), room, bounded);
  // Kernels before 5.11 lack it, and old seccomp filters answer EPERM for what they do not know.
  if (count < 0 && (errno == ENOSYS || errno == EPERM)) count = wait_coarsely(fd_.get(), events.data(), room, bounded);
  if (count >= 0) return static_cast<std::size_t>(count);
  if (errno == EINTR) return std::size_t{0};
  return errno_status("epoll_wait", errno);
}

}  // namespace hawser::base
