// hawser run: starts a program as the ranks of a world, on this host and by ssh on others.
// hawser run-rank: what it starts there.

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/try.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json_out.h"
#include "cli/rank_guard.h"
#include "cli/rank_launcher.h"
#include "cli/rank_process.h"
#include "cli/status_exit.h"

namespace hawser::cli {
namespace {

constexpr int kRunSliceMs = 20;
constexpr std::uint32_t kRanksMax = 1024;
/// Connections to one host that have not come up. From 10 on sshd turns some away (MaxStartups in sshd_config(5)).
constexpr std::ptrdiff_t kStartsAtOnce = 8;
constexpr Duration kFarMore = std::chrono::seconds(2);

constexpr const char* kRunExamples =
    "  hawser run -n 4 python train.py\n"
    "  hawser run -n 2 --directory etcd://10.0.0.5:2379 -- ./program --its-own options\n"
    "  hawser run --hosts node1:8,node2:8 python train.py";

struct RunArguments {
  Common common;
  LaunchOptions launch;
  std::string hosts;
  std::string ssh = "ssh";
};

void print_line_text(std::uint32_t rank, int which, std::string_view line) {
  std::FILE* const to = which == 0 ? stdout : stderr;
  fmt::print(to, "[{}] {}\n", rank, line);
  std::fflush(to);
}

void print_line_json(std::uint32_t rank, int which, std::string_view line) {
  Json event = document("run");
  event["event"] = which == 0 ? "output" : "error_output";
  event["rank"] = rank;
  event["line"] = line;
  print_line(event);
}

class Ranks {
 public:
  explicit Ranks(const RunArguments& a) : a_(a) {}

  /// The exit code of the rank that failed first; 0: none did.
  Result<int> run() {
    HAWSER_TRY(start());
    while (!all_over()) {
      pass_on_output();
      look_at_ends();
    }
    pass_on_output();
    HAWSER_TRY(interrupt_status());
    if (a_.common.json) print_end();
    return exit_code_;
  }

 private:
  Status start() {
    HAWSER_TRY_ASSIGN(RankLauncher launcher, RankLauncher::open(a_.launch));
    launcher_.emplace(std::move(launcher));
    for (std::uint32_t rank = 0; rank < a_.launch.ranks; ++rank) {
      if (!await_turn(rank)) return {};
      HAWSER_TRY_ASSIGN(RankProcess process,
                        launcher_->start(rank, a_.common.json ? print_line_json : print_line_text));
      processes_.push_back(std::move(process));
    }
    return {};
  }

  /// Waits until few enough ranks of its host are starting. False: they all end.
  bool await_turn(std::uint32_t rank) {
    const auto is_in_the_way = [&](const RankProcess& process) {
      return process.is_starting() && launcher_->host_of(process.rank()) == launcher_->host_of(rank);
    };
    while (!is_ending_ && std::ranges::count_if(processes_, is_in_the_way) >= kStartsAtOnce) {
      pass_on_output();
      look_at_ends();
    }
    return !is_ending_;
  }

  void print_end() const {
    Json event = document("run");
    event["event"] = "end";
    event["exit_code"] = exit_code_;
    event["failed_first"] = first_failed_ ? Json(*first_failed_) : Json();
    print_line(event);
  }

  /// A grandchild may hold a pipe of a rank that has ended: it is read from for the time of grace only.
  bool all_over() {
    const bool have_ended = std::ranges::all_of(processes_, [](RankProcess& process) { return process.has_ended(); });
    const Instant now = Clock::steady().now();
    if (have_ended && read_until_ == Instant::max()) read_until_ = now + a_.launch.grace;
    if (now >= read_until_) return true;
    return std::ranges::all_of(
        processes_, [](RankProcess& process) { return process.has_ended() && process.fd(0) < 0 && process.fd(1) < 0; });
  }

  void pass_on_output() {
    std::vector<pollfd> fds;
    std::vector<std::pair<RankProcess*, int>> whose;
    for (RankProcess& process : processes_) {
      for (const int which : {0, 1}) {
        if (process.fd(which) < 0) continue;
        fds.push_back({.fd = process.fd(which), .events = POLLIN, .revents = 0});
        whose.emplace_back(&process, which);
      }
    }
    (void)poll(fds.data(), fds.size(), kRunSliceMs);
    for (std::size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].revents != 0) whose[i].first->pass_on(whose[i].second);
    }
  }

  /// The first failure ends the others: first they are asked, then made to.
  void look_at_ends() {
    const Instant now = Clock::steady().now();
    for (RankProcess& process : processes_) {
      if (!process.has_ended() || process.end().ok() || is_ending_) continue;
      exit_code_ = process.exit_code();
      first_failed_ = process.rank();
      fmt::print(stderr, "hawser run: {}{}; the others are ended\n", process.end().message(),
                 launcher_->place_of(process.rank()));
      begin_to_end(now);
    }
    if (interrupted() && !is_ending_) begin_to_end(now);
    if (!is_ending_ || now < kill_at_) return;
    kill_at_ = Instant::max();
    for (const RankProcess& process : processes_) process.signal(SIGKILL);
  }

  void begin_to_end(Instant now) {
    is_ending_ = true;
    // Ranks of other hosts are ended there, by the same time of grace; that they have is told a moment later.
    kill_at_ = now + a_.launch.grace + (launcher_->has_remote() ? kFarMore : Duration::zero());
    for (RankProcess& process : processes_) {
      if (!process.end_input()) process.signal(SIGTERM);
    }
  }

  const RunArguments& a_;
  std::optional<RankLauncher> launcher_;
  std::vector<RankProcess> processes_;
  int exit_code_ = 0;
  std::optional<std::uint32_t> first_failed_;
  bool is_ending_ = false;
  Instant kill_at_ = Instant::max();
  Instant read_until_ = Instant::max();  ///< Once all have ended.
};

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

/// "a,b:4", or a file's name: a host's name has no slash in it.
Result<std::vector<RankHost>> read_hosts(const std::string& text) {
  if (text.empty()) return std::vector<RankHost>();
  std::error_code ignored;
  if (text.find('/') == std::string::npos && !std::filesystem::is_regular_file(text, ignored)) return parse_hosts(text);
  std::ifstream file(text);
  if (!file) return Status(Code::kNotFound, fmt::format("--hosts: the file '{}' cannot be read", text));
  return parse_host_file(std::string(std::istreambuf_iterator<char>(file), {}));
}

int run(RunArguments& a) {
  catch_interrupts();
  Result<std::vector<RankHost>> hosts = read_hosts(a.hosts);
  if (!hosts) return fail("run", a.common.json, hosts.error());
  a.launch.hosts = std::move(*hosts);
  if (a.launch.ranks == 0) {
    const Result<std::uint32_t> slots = all_slots(a.launch.hosts, kRanksMax);
    if (!slots) return fail("run", a.common.json, slots.error());
    a.launch.ranks = *slots;
  }
  a.launch.ssh = words_of(a.ssh);
  a.launch.config_file = a.common.config;
  const Result<int> code = Ranks(a).run();
  return code ? *code : fail("run", a.common.json, code.error());
}

}  // namespace

void add_run(Shell& shell) {
  auto a = std::make_shared<RunArguments>();
  CLI::App* command = add_command(shell, "run", "Start a program as the ranks of a world, on this host or several",
                                  kRunExamples, a->common);
  command->add_option("-n,--ranks", a->launch.ranks, "How many (default: as many as the hosts have slots)")
      ->check(CLI::Range(1U, kRanksMax));
  command->add_option("--directory", a->launch.directory,
                      "Where ranks find one another, as the option `directory` takes it (default: a new folder)");
  add_duration(command, "--grace", a->launch.grace, "Between SIGTERM and SIGKILL for the others (default 5s)");
  command->add_option("--hosts", a->hosts,
                      "Hosts that share the ranks, name:slots with commas between them, or a file of lines "
                      "`name slots=N` (default: this host)");
  command->add_option("--ssh", a->ssh, "What starts ranks on other hosts, called with a host and a command")
      ->capture_default_str();
  command->add_option("--address", a->launch.address, "How other hosts reach this one (default: its first address)");
  command->add_option("--token-file", a->launch.token_file,
                      "A file of mode 0600, or fd:N, with the secret by which the ranks know one another: at least 128 "
                      "random bits, 22 characters of base64 (default: with --hosts, a new one)");
  command->add_option("--remote-hawser", a->launch.remote_hawser,
                      "The program hawser on the other hosts (default: where it is here)");
  command->prefix_command();
  on_run(shell, command, [a, command, &shell] {
    a->launch.command = command->remaining();
    a->launch.command.insert(a->launch.command.end(), shell.behind_dashes.begin(), shell.behind_dashes.end());
    if (!a->launch.command.empty()) return run(*a);
    return fail("run", a->common.json,
                Status(Code::kInvalid, "no program is given").with_advice("hawser run -n 4 PROGRAM [ARGUMENTS]"));
  });
  CLI::App* guard = shell.root.add_subcommand("run-rank", "What `hawser run --hosts` starts on another host");
  guard->group("");  // Not in --help: people have no use for it.
  on_run(shell, guard, guard_rank);
}

}  // namespace hawser::cli
