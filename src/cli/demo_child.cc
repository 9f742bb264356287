#include "cli/demo_child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace hawser::cli {
namespace {

constexpr int kSliceMs = 5;
constexpr Duration kPatience = std::chrono::milliseconds(500);  // between SIGTERM and SIGKILL

// Between fork and exec only system calls are made.
void follow(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // The parent died before the line above.
  // Ctrl-C reaches the whole process group; the parent decides what it means for the child.
  signal(SIGINT, SIG_IGN);
}

[[noreturn]] void become(const char* command, const char* role, const char* fd_text, int control, pid_t parent) {
  follow(parent);
  if (fcntl(control, F_SETFD, 0) != 0) _exit(1);  // The one descriptor that outlives exec.
  execl("/proc/self/exe", "hawser", command, "--role", role, "--control-fd", fd_text, static_cast<char*>(nullptr));
  _exit(127);
}

[[noreturn]] void become_far(const std::vector<char*>& words, int control, pid_t parent) {
  follow(parent);
  if (dup2(control, STDIN_FILENO) < 0 || dup2(control, STDOUT_FILENO) < 0) _exit(1);
  execvp(words[0], words.data());
  _exit(127);
}

Status describe(const std::string& role, pid_t pid, int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    return Status(Code::kDisconnected, fmt::format("the {} process (pid {}) was killed by signal {} ({})", role, pid,
                                                   number, strsignal(number)));
  }
  const int code = WEXITSTATUS(wait_status);
  if (code == 0) return Status();
  return Status(Code::kDisconnected, fmt::format("the {} process (pid {}) ended with exit code {}", role, pid, code));
}

}  // namespace

Result<Child> Child::start(const std::string& command, const std::string& role, const base::Fd& control) {
  const std::string fd_text = std::to_string(control.get());
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return base::errno_status("starting the second process", errno);
  if (pid == 0) become(command.c_str(), role.c_str(), fd_text.c_str(), control.get(), parent);
  return Child(role, pid);
}

Result<Child> Child::start_far(const std::vector<std::string>& command, const std::string& role,
                               const base::Fd& control) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return base::errno_status("starting the second process", errno);
  if (pid == 0) become_far(words, control.get(), parent);
  return Child(role, pid);
}

Child::Child(Child&& other) noexcept
    : role_(std::move(other.role_)), pid_(std::exchange(other.pid_, -1)), ended_(std::move(other.ended_)) {}

Child::~Child() {
  if (pid_ < 0 || ended_) return;
  kill(pid_, SIGTERM);
  if (!wait(kPatience).ok() && !ended_) {
    kill(pid_, SIGKILL);
    int wait_status = 0;
    waitpid(pid_, &wait_status, 0);
  }
}

void Child::reap(int wait_status) { ended_ = describe(role_, pid_, wait_status); }

Status Child::running() {
  if (!ended_) {
    int wait_status = 0;
    if (waitpid(pid_, &wait_status, WNOHANG) != pid_) return Status();
    reap(wait_status);
  }
  return ended_->ok() ? Status(Code::kDisconnected, fmt::format("the {} process (pid {}) ended early", role_, pid_))
                      : *ended_;
}

Status Child::wait(Duration timeout) {
  const Instant deadline = Clock::steady().now() + timeout;
  while (!ended_) {
    int wait_status = 0;
    if (waitpid(pid_, &wait_status, WNOHANG) == pid_) {
      reap(wait_status);
    } else if (Clock::steady().now() > deadline) {
      return Status(Code::kTimedOut, fmt::format("the {} process (pid {}) did not end in time", role_, pid_));
    } else {
      poll(nullptr, 0, kSliceMs);
    }
  }
  return *ended_;
}

}  // namespace hawser::cli
