#include "backend/shm/cross_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/fd.h"
#include "base/format.h"

namespace hawser::backend::shm {
namespace {

/// Linux Security Module Yama: '1' allows descendants only.
bool yama_restricts() {
  const base::Fd fd(::open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC));
  char scope = '0';
  return fd && ::read(fd.get(), &scope, 1) == 1 && scope != '0';
}

Status refused(int process) {
  Status status(Code::kUnsupported, base::format("the kernel refuses cross-memory attach to process {}", process));
  if (yama_restricts()) {
    return status.with_advice(
        "use memory from Agent::allocate, set HAWSER_ADOPT=1 where the peer registers its memory, open shm with "
        "allow_attach=yes at the peer, or as "
        "root: sysctl kernel.yama.ptrace_scope=0");
  }
  return status.with_advice(
      "use memory from Agent::allocate, or set HAWSER_ADOPT=1 where the peer registers its memory; in containers allow "
      "process_vm_readv (seccomp, "
      "CAP_SYS_PTRACE) and share the user namespace");
}

}  // namespace

Status cross_memory_status(int error, int process) {
  switch (error) {
    case EPERM:
    case ENOSYS:
      return refused(process);
    case ESRCH:
      return Status(Code::kDisconnected, base::format("process {} exited", process));
    case EFAULT:
      return Status(Code::kFailed,
                    base::format("memory here or in process {} is not mapped as the region says", process))
          .with_advice("memory must stay mapped until its region is closed");
    default:
      return base::errno_status(Code::kFailed, base::format("cross-memory attach to process {}", process), error);
  }
}

Status CrossMemory::try_probe(const Probe& probe) const {
  if (process_ <= 0) {
    return Status(Code::kUnsupported, "the peer's process is in a process-id namespace that cannot be seen from here")
        .with_advice(
            "use memory from Agent::allocate, set HAWSER_ADOPT=1 where the peer registers its memory, or run both "
            "containers with a shared pid namespace");
  }
  if (process_fd_ < 0) {
    return Status(Code::kUnsupported, "the kernel has no pidfd: a reused process id could not be noticed")
        .with_advice("use memory from Agent::allocate, or Linux 5.3 or later");
  }
  base::Id128 value;
  const iovec local{&value, sizeof value};
  const iovec remote{reinterpret_cast<void*>(probe.address), sizeof value};
  const ssize_t size = move(Operation::kRead, {&local, 1}, {&remote, 1});
  if (size < 0) return cross_memory_status(static_cast<int>(-size), process_).with_scope(Scope::kPath);
  if (size != sizeof value || !(value == probe.value)) {
    return Status(Code::kUnsupported, base::format("process {} is not the peer, or its probe has moved", process_));
  }
  return {};
}

void CrossMemory::watch() {
  is_watch_tried_ = true;
  ForkFd watch(base::Fd(::epoll_create1(EPOLL_CLOEXEC)), *forks_);
  epoll_event process{.events = EPOLLIN, .data = {}}, socket{.events = EPOLLRDHUP, .data = {}};
  if (::epoll_ctl(watch.get(), EPOLL_CTL_ADD, process_fd_, &process) != 0) return;
  if (::epoll_ctl(watch.get(), EPOLL_CTL_ADD, socket_, &socket) != 0) return;
  watch_ = std::move(watch);
}

bool CrossMemory::is_alive() {
  if (seen_.lasts()) return true;
  seen_.begin();  // Before the look: what it tells is not younger.
  const bool alive = look();
  if (!alive) seen_ = {};
  return alive;
}

bool CrossMemory::look() {
  if (process_fd_ < 0 || socket_ < 0) return false;
  if (!is_watch_tried_) watch();
  if (!watch_) return look_by_poll();
  epoll_event event;
  const int count = ::epoll_wait(watch_.get(), &event, 1, 0);
  return count == 0 || (count < 0 && errno == EINTR);
}

bool CrossMemory::look_by_poll() const {
  std::array<pollfd, 2> watched{{{process_fd_, POLLIN, 0}, {socket_, POLLRDHUP, 0}}};
  if (::poll(watched.data(), watched.size(), 0) < 0) return errno == EINTR;
  return watched[0].revents == 0 && (watched[1].revents & (POLLHUP | POLLRDHUP | POLLERR)) == 0;
}

ssize_t CrossMemory::move(Operation op, std::span<const iovec> local, std::span<const iovec> remote) const {
  const auto call = op == Operation::kRead ? &::process_vm_readv : &::process_vm_writev;
  const ssize_t size = call(process_, local.data(), local.size(), remote.data(), remote.size(), 0);
  return size >= 0 ? size : -errno;
}

}  // namespace hawser::backend::shm
