#include "cli/rank_guard.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/try.h"
#include "cli/status_exit.h"
#include "cli/token_share.h"

namespace hawser::cli {
namespace {

using Fields = nlohmann::json;

constexpr int kGuardSliceMs = 20;
constexpr const char* kTokenVariable = "HAWSER_TOKEN_FILE";
constexpr std::size_t kGuardLineMax = 1 << 20;
constexpr Duration kOrderPatience = std::chrono::seconds(30);

/// Standard input: a line, then nothing, then its end.
class Input {
 public:
  /// Waits so long. False: nothing came.
  bool look(int timeout_ms) {
    pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (::poll(&fd, 1, timeout_ms) <= 0) return false;
    std::array<char, 4096> buffer;
    const ssize_t size = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return false;
    if (size <= 0) has_ended_ = true;
    if (size > 0 && text_.size() < kGuardLineMax) text_.append(buffer.data(), static_cast<std::size_t>(size));
    return true;
  }
  bool has_ended() const { return has_ended_; }
  bool has_line() const { return text_.find('\n') != std::string::npos; }
  std::string line() const { return text_.substr(0, text_.find('\n')); }

 private:
  std::string text_;
  bool has_ended_ = false;
};

void print_guarded(std::uint32_t, int which, std::string_view line) {
  std::FILE* const to = which == 0 ? stdout : stderr;
  fmt::print(to, "{}\n", line);
  std::fflush(to);
}

Result<GuardOrder> read_order(Input& input) {
  const Instant until = Clock::steady().now() + kOrderPatience;
  while (!input.has_line() && !input.has_ended() && Clock::steady().now() < until) (void)input.look(kGuardSliceMs);
  if (!input.has_line()) return Status(Code::kInvalid, "hawser run: what to start did not come on standard input");
  return parse_order(input.line());
}

/// Passes on what the program writes, for a moment.
void pass_on(RankProcess& process) {
  std::array<pollfd, 2> fds;
  for (const int which : {0, 1}) fds[which] = {.fd = process.fd(which), .events = POLLIN, .revents = 0};
  (void)::poll(fds.data(), fds.size(), kGuardSliceMs);
  for (const int which : {0, 1}) {
    if (process.fd(which) >= 0 && fds[which].revents != 0) process.pass_on(which);
  }
}

bool is_over(RankProcess& process) { return process.has_ended() && process.fd(0) < 0 && process.fd(1) < 0; }

/// Puts the token where the program finds it.
Result<std::optional<TokenShare>> share_token(GuardOrder& order) {
  std::optional<TokenShare> share;
  if (order.token.empty()) return share;
  HAWSER_TRY_ASSIGN(const identity::TokenText token, identity::TokenText::parse(order.token));
  HAWSER_TRY_ASSIGN(share, TokenShare::make(token));
  std::erase_if(order.environment, [](const auto& each) { return each.first == kTokenVariable; });
  order.environment.emplace_back(kTokenVariable, share->path());
  return share;
}

Result<int> run_order(Input& input) {
  HAWSER_TRY_ASSIGN(GuardOrder order, read_order(input));
  print_guarded(order.rank, 0, kGuardGreeting);
  if (::chdir(order.folder.c_str()) != 0) {
    return Status(Code::kNotFound, fmt::format("hawser run: rank {}: the folder '{}' cannot be entered here: {}",
                                               order.rank, order.folder, std::strerror(errno)))
        .with_advice("the ranks of all hosts start in the folder where hawser run was started");
  }
  HAWSER_TRY_ASSIGN(const std::optional<TokenShare> token, share_token(order));
  std::optional<cpu_set_t> share;
  if (order.binds) {
    HAWSER_TRY_ASSIGN(share, share_of(processors(), *order.binds));
  }
  HAWSER_TRY_ASSIGN(RankProcess process, RankProcess::start(order.rank, order.command, order.environment, print_guarded,
                                                            std::string(), share));
  process.end_input();  // Ours tells of the connection.
  Instant kill_at = Instant::max(), leave_at = Instant::max();
  while (!is_over(process)) {
    pass_on(process);
    if (!input.has_ended()) (void)input.look(0);
    const Instant now = Clock::steady().now();
    if (input.has_ended() && kill_at == Instant::max()) {
      kill_at = now + order.grace;
      process.signal(SIGTERM);
    }
    if (now >= kill_at) process.signal(SIGKILL);
    // A grandchild may hold a pipe of a program that has ended.
    if (process.has_ended() && leave_at == Instant::max()) leave_at = now + order.grace;
    if (now >= leave_at) break;
  }
  return process.exit_code();
}

}  // namespace

Result<std::string> to_line(const GuardOrder& order) {
  Fields json = {{"rank", order.rank},
                 {"folder", order.folder},
                 {"grace_ns", order.grace.count()},
                 {"environment", Fields::array()},
                 {"token", order.token},
                 {"command", order.command}};
  if (order.binds) json["binds"] = {order.binds->rank, order.binds->size};
  for (const auto& [name, value] : order.environment) json["environment"].push_back({name, value});
  try {
    return json.dump(-1, ' ', true) + "\n";
  } catch (const Fields::exception&) {
    return Status(Code::kInvalid, fmt::format("hawser run: rank {}: the folder, the program's arguments or a variable "
                                              "HAWSER_* is not UTF-8, and cannot be told to another host",
                                              order.rank))
        .with_advice("use names and values in UTF-8");
  }
}

Result<GuardOrder> parse_order(const std::string& line) {
  try {
    const Fields json = Fields::parse(line);
    GuardOrder order{.rank = json.at("rank").get<std::uint32_t>(),
                     .folder = json.at("folder").get<std::string>(),
                     .grace = Duration(json.at("grace_ns").get<std::int64_t>())};
    for (const Fields& pair : json.at("environment")) {
      order.environment.emplace_back(pair.at(0).get<std::string>(), pair.at(1).get<std::string>());
    }
    order.token = json.value("token", std::string());
    order.command = json.at("command").get<std::vector<std::string>>();
    if (json.contains("binds")) {
      const Fields& binds = json.at("binds");
      order.binds = {.rank = binds.at(0).get<std::uint32_t>(), .size = binds.at(1).get<std::uint32_t>()};
    }
    if (!order.command.empty()) return order;
  } catch (const Fields::exception&) {
    // Told below.
  }
  return Status(Code::kInvalid, "hawser run: what came on standard input tells of no rank to start")
      .with_advice("run-rank is for `hawser run --hosts` alone");
}

int guard_rank() {
  ::signal(SIGPIPE, SIG_IGN);  // The reader of the output may be gone before the program has ended.
  Input input;
  const Result<int> code = run_order(input);
  if (code) return *code;
  fmt::print(stderr, "{}\n", code.error().to_string());
  return exit_code(code.error().code());
}

}  // namespace hawser::cli
