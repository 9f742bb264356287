#include "cli/rank_run.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "base/shown.h"
#include "base/try.h"
#include "cli/interrupt.h"

namespace hawser::cli {
namespace {

constexpr int kRunSliceMs = 20;
constexpr std::size_t kHostFileMax = std::size_t{1} << 20;
/// Connections to one host that have not come up. From 10 on sshd turns some away (MaxStartups in sshd_config(5)).
constexpr std::ptrdiff_t kStartsAtOnce = 8;
constexpr Duration kFarMore = std::chrono::seconds(2);

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
  std::string list(kHostFileMax, '\0');
  if (file) file.read(list.data(), static_cast<std::streamsize>(list.size()));
  if (file.bad() || file.gcount() == 0) {  // A folder opens, and cannot be read.
    return Status(Code::kNotFound,
                  fmt::format("--hosts: the file '{}' cannot be read, or it is empty", base::shown(text)));
  }
  list.resize(static_cast<std::size_t>(file.gcount()));
  return parse_host_file(list);
}

}  // namespace

Status place_on_hosts(const std::string& hosts, const std::string& ssh, LaunchOptions& launch) {
  HAWSER_TRY_ASSIGN(launch.hosts, read_hosts(hosts));
  if (launch.ranks == 0) {
    HAWSER_TRY_ASSIGN(launch.ranks, all_slots(launch.hosts, kRanksMax));
  }
  launch.ssh = words_of(ssh);
  return {};
}

RankRun::RankRun(const LaunchOptions& launch, std::string command, RankProcess::Lines lines)
    : launch_(launch), command_(std::move(command)), lines_(std::move(lines)) {}

Result<int> RankRun::run() {
  HAWSER_TRY(start());
  while (!all_over()) {
    pass_on_output();
    look_at_ends();
  }
  pass_on_output();
  HAWSER_TRY(interrupt_status());
  return exit_code_;
}

Status RankRun::start() {
  HAWSER_TRY_ASSIGN(RankLauncher launcher, RankLauncher::open(launch_));
  launcher_.emplace(std::move(launcher));
  for (std::uint32_t rank = 0; rank < launch_.ranks; ++rank) {
    if (!await_turn(rank)) return {};
    HAWSER_TRY_ASSIGN(RankProcess process, launcher_->start(rank, lines_));
    processes_.push_back(std::move(process));
  }
  return {};
}

/// Waits until few enough ranks of its host are starting. False: they all end.
bool RankRun::await_turn(std::uint32_t rank) {
  const auto is_in_the_way = [&](const RankProcess& process) {
    return process.is_starting() && launcher_->host_of(process.rank()) == launcher_->host_of(rank);
  };
  while (!is_ending_ && std::ranges::count_if(processes_, is_in_the_way) >= kStartsAtOnce) {
    pass_on_output();
    look_at_ends();
  }
  return !is_ending_;
}

/// A grandchild may hold a pipe of a rank that has ended: it is read from for the time of grace only.
bool RankRun::all_over() {
  const bool have_ended = std::ranges::all_of(processes_, [](RankProcess& process) { return process.has_ended(); });
  const Instant now = Clock::steady().now();
  if (have_ended && read_until_ == Instant::max()) read_until_ = now + launch_.grace;
  if (now >= read_until_) return true;
  return std::ranges::all_of(
      processes_, [](RankProcess& process) { return process.has_ended() && process.fd(0) < 0 && process.fd(1) < 0; });
}

void RankRun::pass_on_output() {
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
void RankRun::look_at_ends() {
  const Instant now = Clock::steady().now();
  for (RankProcess& process : processes_) {
    if (!process.has_ended() || process.end().ok() || is_ending_) continue;
    exit_code_ = process.exit_code();
    first_failed_ = process.rank();
    fmt::print(stderr, "hawser {}: {}{}; the others are ended\n", command_, process.end().message(),
               launcher_->place_of(process.rank()));
    begin_to_end(now);
  }
  if (interrupted() && !is_ending_) begin_to_end(now);
  if (!is_ending_ || now < kill_at_) return;
  kill_at_ = Instant::max();
  for (const RankProcess& process : processes_) process.signal(SIGKILL);
}

void RankRun::begin_to_end(Instant now) {
  is_ending_ = true;
  // Ranks of other hosts are ended there, by the same time of grace; that they have is told a moment later.
  kill_at_ = now + launch_.grace + (launcher_->has_remote() ? kFarMore : Duration::zero());
  for (RankProcess& process : processes_) {
    if (!process.end_input()) process.signal(SIGTERM);
  }
}

}  // namespace hawser::cli
