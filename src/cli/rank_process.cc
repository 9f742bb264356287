#include "cli/rank_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

namespace hawser::cli {
namespace {

constexpr std::size_t kRankLineMax = 64 * 1024;  ///< A longer one is printed in pieces.

/// The environment of this process with those variables set.
std::vector<std::string> merged(const RankProcess::Environment& wanted) {
  std::vector<std::string> all;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view entry = *at;
    const std::string_view name = entry.substr(0, entry.find('='));
    bool is_ours = false;
    for (const auto& [key, value] : wanted) is_ours = is_ours || key == name;
    if (!is_ours) all.emplace_back(entry);
  }
  for (const auto& [key, value] : wanted) all.push_back(key + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// Why exec failed, written into `room`. strerror takes locks, which nobody may do between fork and exec.
std::string_view why_not_started(int error, std::span<char> room) {
  switch (error) {
    case ENOENT:
      return "No such file or directory";
    case EACCES:
      return "Permission denied";
    case ENOEXEC:
      return "Exec format error";
    case E2BIG:
      return "Argument list too long";
    default:
      break;
  }
  constexpr std::string_view kText = "errno ";
  std::ranges::copy(kText, room.begin());
  const auto [end, wrong] = std::to_chars(room.data() + kText.size(), room.data() + room.size(), error);
  return {room.data(), static_cast<std::size_t>(end - room.data())};
}

// Between fork and exec only system calls are made.
[[noreturn]] void become(char* const* command, char* const* environment, int in, int out, int err, pid_t parent,
                         const cpu_set_t* processors) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // The parent died before the line above.
  signal(SIGINT, SIG_IGN);            // Ctrl-C reaches the whole group; the parent decides what it means.
  signal(SIGPIPE, SIG_DFL);           // A guard ignores it.
  if (processors != nullptr && sched_setaffinity(0, sizeof *processors, processors) != 0) {
    constexpr std::string_view kText = "hawser run: --bind-to: the kernel does not let the rank run there\n";
    (void)!write(STDERR_FILENO, kText.data(), kText.size());
    _exit(127);
  }
  if (in >= 0 && dup2(in, STDIN_FILENO) < 0) _exit(127);
  if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) _exit(127);
  execvpe(command[0], command, environment);
  std::array<char, 32> room;
  const std::string_view why = why_not_started(errno, room);
  for (const std::string_view part : {std::string_view("hawser run: the program '"), std::string_view(command[0]),
                                      std::string_view("' cannot be started: "), why, std::string_view("\n")}) {
    (void)!write(STDERR_FILENO, part.data(), part.size());
  }
  _exit(127);
}

}  // namespace

Result<RankProcess> RankProcess::start(std::uint32_t rank, const std::vector<std::string>& command,
                                       const Environment& environment, Lines lines,
                                       const std::optional<std::string>& input,
                                       const std::optional<cpu_set_t>& processors) {
  int in[2] = {-1, -1}, out[2], err[2];
  if (input && input->size() > kInputMax) {
    return Status(Code::kInvalid, fmt::format("hawser run: the command and its environment take {} bytes; at most {}",
                                              input->size(), kInputMax));
  }
  if (input && pipe2(in, O_CLOEXEC) != 0) return base::errno_status("hawser run: pipe", errno);
  base::Fd in_read(in[0]), in_write(in[1]);
  if (pipe2(out, O_CLOEXEC) != 0) return base::errno_status("hawser run: pipe", errno);
  base::Fd out_read(out[0]), out_write(out[1]);
  if (pipe2(err, O_CLOEXEC) != 0) return base::errno_status("hawser run: pipe", errno);
  base::Fd err_read(err[0]), err_write(err[1]);
  for (const int fd : {out[0], err[0]}) (void)fcntl(fd, F_SETFL, O_NONBLOCK);
  std::vector<std::string> words = command, variables = merged(environment);
  const std::vector<char*> argv = pointers(words), envp = pointers(variables);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return base::errno_status("hawser run: fork", errno);
  if (pid == 0) {
    become(argv.data(), envp.data(), in_read.get(), out_write.get(), err_write.get(), parent,
           processors ? &*processors : nullptr);
  }
  RankProcess made(rank, pid, std::move(out_read), std::move(err_read), std::move(lines));
  // The pipe is empty, so all of it fits.
  if (input && write(in_write.get(), input->data(), input->size()) != static_cast<ssize_t>(input->size())) {
    return base::errno_status("hawser run: the input of a rank", errno);
  }
  made.input_ = std::move(in_write);
  return made;
}

bool RankProcess::end_input() {
  const bool had = input_.valid();
  input_.reset();
  return had;
}

RankProcess::RankProcess(std::uint32_t rank, pid_t pid, base::Fd out, base::Fd err, Lines lines)
    : rank_(rank), lines_(std::move(lines)), pid_(pid), pipes_{std::move(out), std::move(err)} {}

RankProcess::RankProcess(RankProcess&& other) noexcept
    : rank_(other.rank_),
      lines_(std::move(other.lines_)),
      pid_(std::exchange(other.pid_, -1)),
      pipes_{std::move(other.pipes_[0]), std::move(other.pipes_[1])},
      input_(std::move(other.input_)),
      rest_{std::move(other.rest_[0]), std::move(other.rest_[1])},
      greeting_(std::move(other.greeting_)),
      ended_(std::move(other.ended_)),
      exit_code_(other.exit_code_) {}

RankProcess::~RankProcess() {
  if (pid_ < 0 || ended_) return;
  kill(pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
}

void RankProcess::tell(int which, std::string_view line) {
  const bool is_greeting = which == 0 && !greeting_.empty() && line == greeting_;
  is_greeting ? greeting_.clear() : lines_(rank_, which, line);
}

void RankProcess::pass_on(int which) {
  std::array<char, 16 * 1024> buffer;
  std::string& rest = rest_[which];
  for (;;) {
    const ssize_t size = read(pipes_[which].get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) break;
    rest.append(buffer.data(), static_cast<std::size_t>(size));
    for (std::size_t end = rest.find('\n'); end != std::string::npos || rest.size() > kRankLineMax;
         end = rest.find('\n')) {
      const bool is_whole = end != std::string::npos && end <= kRankLineMax;
      tell(which, std::string_view(rest).substr(0, is_whole ? end : kRankLineMax));
      rest.erase(0, is_whole ? end + 1 : kRankLineMax);
    }
  }
  if (!rest.empty()) tell(which, std::exchange(rest, {}));
  pipes_[which].reset();
}

bool RankProcess::has_ended() {
  if (ended_) return true;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    exit_code_ = 128 + number;
    ended_ = Status(Code::kFailed, fmt::format("rank {} (pid {}) was killed by signal {} ({})", rank_, pid_, number,
                                               strsignal(number)));
  } else {
    exit_code_ = WEXITSTATUS(status);
    ended_ = exit_code_ == 0 ? Status()
                             : Status(Code::kFailed,
                                      fmt::format("rank {} (pid {}) ended with exit code {}", rank_, pid_, exit_code_));
  }
  return true;
}

void RankProcess::signal(int number) const {
  if (!ended_) kill(pid_, number);
}

}  // namespace hawser::cli
