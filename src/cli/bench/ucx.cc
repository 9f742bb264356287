#include "cli/bench/ucx.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/try.h"
#include "cli/bench/cores.h"
#include "cli/bench/sampler.h"

namespace hawser::cli::bench {
namespace {

constexpr std::int64_t kRunNs = 30'000'000'000;     // one whole test, at most
constexpr std::int64_t kConnectNs = 5'000'000'000;  // until the server listens
constexpr int kRetryMs = 20;

// A program that is killed with its object.
class Process {
 public:
  static Result<Process> start(const std::vector<std::string>& words, const std::vector<std::string>& env, int out);
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Process& operator=(Process&&) = delete;
  ~Process() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

 private:
  explicit Process(pid_t pid) : pid_(pid) {}
  pid_t pid_;
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

Result<Process> Process::start(const std::vector<std::string>& words, const std::vector<std::string>& env, int out) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  if (out >= 0) {
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  pid_t pid = -1;
  // Unlike fork it copies no page tables, so the bench's own memory is as it was.
  const int error =
      posix_spawn(&pid, words[0].c_str(), &actions, nullptr, pointers(words).data(), pointers(env).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return base::errno_status(fmt::format("starting {}", words[0]), error);
  return Process(pid);
}

std::vector<std::string> environment(const UcxTool& tool, const std::map<std::string, std::string>& own) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("UCX_") && !text.starts_with("LD_LIBRARY_PATH=")) all.emplace_back(text);
  }
  for (const auto& [name, value] : own) all.push_back(fmt::format("{}={}", name, value));
  all.emplace_back("UCX_WARN_UNUSED_ENV_VARS=n");
  const char* old = std::getenv("LD_LIBRARY_PATH");
  all.push_back(
      fmt::format("LD_LIBRARY_PATH={}{}{}", tool.library_path, old == nullptr ? "" : ":", old == nullptr ? "" : old));
  return all;
}

// A port that nobody has just now.
Result<std::uint16_t> free_port() {
  const base::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd.get(), generic, size) != 0 || getsockname(fd.get(), generic, &size) != 0) {
    return base::errno_status("a port for ucx_perftest", errno);
  }
  return ntohs(address.sin_port);
}

std::vector<std::string> command_line(const UcxTool& tool, std::uint16_t port, int core) {
  std::vector<std::string> words = {tool.program, "-p", std::to_string(port)};
  if (core >= 0) words.insert(words.end(), {"-c", std::to_string(core)});
  return words;
}

// All that the client prints, until it ends or time is over.
std::string read_all_of(int fd, std::int64_t deadline) {
  std::string text;
  std::array<char, 4096> bytes;
  while (now_ns() < deadline) {
    pollfd entry{fd, POLLIN, 0};
    if (poll(&entry, 1, 100) <= 0) continue;
    const ssize_t n = read(fd, bytes.data(), bytes.size());
    if (n <= 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(n));
  }
  return text;
}

// The last line of the CSV: iterations, median, average, overall latency (µs), ...
Result<double> parse(const std::string& text, bool by_median) {
  const std::size_t header = text.find("iterations,");
  const std::size_t line = header == std::string::npos ? header : text.find('\n', header);
  if (line == std::string::npos) return Status(Code::kFailed, "ucx_perftest printed no result");
  std::array<double, 4> values = {};
  const char* at = text.data() + line + 1;
  const char* const end = text.data() + text.size();
  for (double& value : values) {
    while (at < end && *at == ' ') ++at;  // Numbers are set to a width.
    const auto parsed = std::from_chars(at, end, value);
    if (parsed.ec != std::errc()) return Status(Code::kFailed, "ucx_perftest printed no numbers");
    at = parsed.ptr < end ? parsed.ptr + 1 : end;
  }
  return values[by_median ? 1 : 3] * 1e3;
}

}  // namespace

Result<UcxTool> find_ucx() {
  std::vector<std::string> places;
  if (const char* named = std::getenv("UCX_PERFTEST")) {
    places.emplace_back(named);
  } else if (const char* path = std::getenv("PATH")) {
    std::string_view rest(path);
    while (!rest.empty()) {
      places.push_back(fmt::format("{}/ucx_perftest", rest.substr(0, rest.find(':'))));
      rest = rest.find(':') == std::string_view::npos ? std::string_view() : rest.substr(rest.find(':') + 1);
    }
  }
  for (const std::string& place : places) {
    if (access(place.c_str(), X_OK) != 0) continue;
    const std::string folder = place.substr(0, place.rfind('/'));
    return UcxTool{place, folder.substr(0, folder.rfind('/')) + "/lib"};
  }
  return Status(Code::kUnsupported, "ucx_perftest is not installed")
      .with_advice("set UCX_PERFTEST to its path; docs/measurements.md tells how to get it");
}

Result<double> run_ucx(const UcxTool& tool, const UcxTest& test) {
  const auto cores = bench_cores();
  const auto env = environment(tool, test.env);
  auto differing = test.server_env;
  differing.insert(test.env.begin(), test.env.end());
  const auto server_env = environment(tool, differing);
  const std::int64_t start = now_ns();
  HAWSER_TRY_ASSIGN(const std::uint16_t port, free_port());
  HAWSER_TRY_ASSIGN(const Process server, Process::start(command_line(tool, port, cores[1]), server_env, -1));
  std::vector<std::string> words = command_line(tool, port, cores[0]);
  words.insert(words.begin() + 1, "127.0.0.1");
  for (std::string word : {std::string("-t"), test.test, std::string("-s"), std::to_string(test.size),
                           std::string("-n"), std::to_string(test.iterations), std::string("-w"),
                           std::to_string(std::max<std::uint64_t>(test.iterations / 10, 1)), std::string("-f"),
                           std::string("-v"), std::string("-q")}) {
    words.push_back(std::move(word));
  }
  // The client gives up at once when the server does not listen yet.
  std::string text;
  while (text.find("iterations,") == std::string::npos && now_ns() - start < kConnectNs) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return base::errno_status("a pipe for ucx_perftest", errno);
    const base::Fd reading(ends[0]);
    base::Fd writing(ends[1]);
    HAWSER_TRY_ASSIGN(const Process client, Process::start(words, env, writing.get()));
    writing.reset();
    text = read_all_of(reading.get(), start + kRunNs);
    if (text.empty()) poll(nullptr, 0, kRetryMs);
  }
  return parse(text, test.by_median);
}

}  // namespace hawser::cli::bench
