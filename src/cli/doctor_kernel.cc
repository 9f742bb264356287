// Checks of system calls, each of them tried: cross-memory attach, membarrier, pidfd, io_uring, userfaultfd.
// See doctor_checks.h.

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/io_uring.h>
#include <linux/membarrier.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "backend/adopted/write_guard.h"
#include "base/fd.h"
#include "cli/doctor_checks.h"
#include "cli/system_limits.h"

namespace hawser::cli {
namespace {

constexpr std::uint64_t kPattern = 0x6861777365722121;

// 0, or the error of reading a word of another process.
int read_word(pid_t pid, const std::uint64_t* address) {
  std::uint64_t value = 0;
  iovec local{&value, sizeof(value)};
  iovec remote{const_cast<std::uint64_t*>(address), sizeof(value)};
  const ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
  if (n != sizeof(value)) return n < 0 ? errno : EIO;
  return value == kPattern ? 0 : EIO;
}

// A child reads its parent: the parent is no descendant of it, as a peer would be none. The reverse is always easier.
int read_parent_from_child(const std::uint64_t* word) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) _exit(read_word(parent, word));
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

int read_child(const std::uint64_t* word) {
  std::array<int, 2> pipe_ends;
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return errno;
  const base::Fd keep_reading(pipe_ends[0]);
  base::Fd release(pipe_ends[1]);
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    close(release.release());
    char byte = 0;
    _exit(read(keep_reading.get(), &byte, 1) < 0 ? 1 : 0);  // Stays until the parent is done.
  }
  const int error = read_word(child, word);
  release.reset();
  waitpid(child, nullptr, 0);
  return error;
}

std::string error_text(int error) { return error == 0 ? "works" : std::strerror(error); }

Finding cross_memory() {
  static const std::uint64_t word = kPattern;  // at the same address in a forked child
  const int to_child = read_child(&word);
  const int to_parent = read_parent_from_child(&word);
  const auto scope = read_file("/proc/sys/kernel/yama/ptrace_scope");
  const bool good = to_child == 0 && to_parent == 0;
  return {"kernel.cross_memory", good ? Verdict::kOk : Verdict::kWarn,
          fmt::format("a process reads its child: {}; a process that is no parent: {}; ptrace_scope {}",
                      error_text(to_child), error_text(to_parent), scope.value_or("absent")),
          "shm copies in memory that you allocated yourself with process_vm_readv; memory from Agent::allocate does "
          "not need it",
          good ? "" : "sudo sysctl kernel.yama.ptrace_scope=0   (container: --cap-add=SYS_PTRACE)"};
}

Finding memory_barrier() {
  const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  const bool good = commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0 &&
                    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  return {"kernel.membarrier", good ? Verdict::kOk : Verdict::kWarn,
          good ? "expedited barriers work" : fmt::format("membarrier: {}", std::strerror(errno)),
          "makes each shm copy cheap and the rare close of a region pay; without it every copy pays a fence (13 ns)",
          good ? "" : "use Linux 4.16 or newer, and allow the system call membarrier"};
}

Finding process_descriptor() {
  const base::Fd fd(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  return {"kernel.pidfd", fd ? Verdict::kOk : Verdict::kFail,
          fd ? "process descriptors work" : fmt::format("pidfd_open: {}", std::strerror(errno)),
          "how shm learns within milliseconds that a peer's process died, and never mistakes another for it",
          fd ? "" : "use Linux 5.3 or newer, and allow the system call pidfd_open"};
}

Finding uring() {
  io_uring_params params = {};
  const base::Fd fd(static_cast<int>(syscall(SYS_io_uring_setup, 4, &params)));
  return {"kernel.io_uring", fd ? Verdict::kOk : Verdict::kWarn,
          fd ? "rings can be made" : fmt::format("io_uring_setup: {}", std::strerror(errno)),
          "file transfers use it where it is; everything has a way without it",
          fd ? "" : "sudo sysctl kernel.io_uring_disabled=0   (container: a seccomp profile that allows io_uring_*)"};
}

Finding write_guard() {
  const auto guard = backend::WriteGuard::make();
  std::string found = "threads that write to memory while it is adopted wait";
  if (!guard) found = guard.error().message();
  if (guard && !guard->holds_system_calls()) found += "; their system calls fail meanwhile";
  return {"kernel.userfaultfd", guard ? Verdict::kOk : Verdict::kWarn, std::move(found),
          "adopt (HAWSER_ADOPT=1) moves registered memory; without it nobody may write there while it is registered "
          "or closed",
          guard ? "" : "use Linux 5.19 or newer   (container: a seccomp profile that allows userfaultfd)"};
}

Finding wakeups() {
  const std::string mode = read_file("/proc/self/status").value_or("");
  const bool filtered = mode.find("Seccomp:\t2") != std::string::npos;
  return {"kernel.seccomp", Verdict::kOk, filtered ? "system calls are filtered" : "no filter",
          "a filter is why a check above may fail though the kernel is new enough",
          filtered ? "if a check above failed: container: --security-opt seccomp=unconfined" : ""};
}

}  // namespace

void check_kernel(Findings& findings) {
  findings.push_back(cross_memory());
  findings.push_back(memory_barrier());
  findings.push_back(process_descriptor());
  findings.push_back(uring());
  findings.push_back(write_guard());
  findings.push_back(wakeups());
}

}  // namespace hawser::cli
