#include "peer_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>
#include <utility>

extern char** environ;

namespace hawser::real {
namespace {

Instant now() { return Clock::steady().now(); }

int milliseconds_until(Instant deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0)) + 1;
}

}  // namespace

PeerProcess PeerProcess::start(const std::string& open) {
  int to[2], from[2];
  if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  std::string program = HAWSER_REAL_PEER;
  char* const arguments[] = {program.data(), nullptr};
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(to[0]);
  ::close(from[1]);
  PeerProcess peer(pid, base::Fd(to[1]), base::Fd(from[0]));
  if (failed != 0) throw std::runtime_error("cannot start " + program);
  peer.ask("open " + open);
  return peer;
}

PeerProcess::PeerProcess(PeerProcess&& other) noexcept { *this = std::move(other); }

PeerProcess& PeerProcess::operator=(PeerProcess&& other) noexcept {
  if (this != &other) {
    stop_waiting();
    pid_ = std::exchange(other.pid_, -1);
    to_ = std::move(other.to_);
    from_ = std::move(other.from_);
    buffer_ = std::move(other.buffer_);
  }
  return *this;
}

PeerProcess::~PeerProcess() { stop_waiting(); }

void PeerProcess::stop_waiting() noexcept {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void PeerProcess::send(const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t size = ::write(to_.get(), text.data() + at, text.size() - at);
    if (size <= 0) throw std::runtime_error("the peer process takes no more: " + line.substr(0, 60));
    at += static_cast<std::size_t>(size);
  }
}

std::string PeerProcess::answer(Duration timeout) {
  const Instant deadline = now() + timeout;
  for (;;) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      if (line.starts_with("ok")) return line.size() > 3 ? line.substr(3) : std::string();
      throw std::runtime_error("the peer process answers: " + line);
    }
    pollfd one{.fd = from_.get(), .events = POLLIN, .revents = 0};
    if (now() >= deadline || ::poll(&one, 1, milliseconds_until(deadline)) == 0) {
      throw std::runtime_error("the peer process does not answer");
    }
    char bytes[65536];
    const ssize_t size = ::read(from_.get(), bytes, sizeof(bytes));
    if (size <= 0) throw std::runtime_error("the peer process has ended");
    buffer_.append(bytes, static_cast<std::size_t>(size));
  }
}

std::string PeerProcess::ask(const std::string& line, Duration timeout) {
  send(line);
  try {
    return answer(timeout);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(line.substr(0, 60) + ": " + error.what());
  }
}

void PeerProcess::signal(int number) const { ::kill(pid_, number); }

void PeerProcess::stop() const {
  ::kill(pid_, SIGSTOP);
  int status = 0;
  ::waitpid(pid_, &status, WUNTRACED);
}

void PeerProcess::resume() const {
  ::kill(pid_, SIGCONT);
  int status = 0;
  ::waitpid(pid_, &status, WCONTINUED);
}

void PeerProcess::kill() { stop_waiting(); }

int PeerProcess::wait_end(Duration timeout) {
  for (const Instant deadline = now() + timeout; now() < deadline;) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return status;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  throw std::runtime_error("the peer process does not end");
}

std::string PeerProcess::to_hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

std::string PeerProcess::from_hex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

}  // namespace hawser::real
