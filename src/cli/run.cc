// hawser run: starts a program as the ranks of a world on this host.

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/try.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json_out.h"
#include "cli/rank_process.h"
#include "cli/status_exit.h"

namespace hawser::cli {
namespace {

constexpr int kSliceMs = 20;
constexpr std::uint32_t kRanksMax = 1024;

constexpr const char* kExamples =
    "  hawser run -n 4 python train.py\n"
    "  hawser run -n 2 --directory etcd://10.0.0.5:2379 -- ./program --its-own options";

struct Arguments {
  Common common;
  std::uint32_t ranks = 1;
  std::string directory;
  Duration grace = std::chrono::seconds(5);
  std::vector<std::string> command;
};

/// A folder that only this user can look into, and that goes in the end.
class OwnFolder {
 public:
  static Result<OwnFolder> make() {
    std::string path = (std::filesystem::temp_directory_path() / "hawser-run-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) return base::errno_status("hawser run: a folder " + path, errno);
    return OwnFolder(std::move(path));
  }
  OwnFolder(OwnFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  OwnFolder& operator=(OwnFolder&&) = delete;
  ~OwnFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit OwnFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

void print_text(std::uint32_t rank, int which, std::string_view line) {
  std::FILE* const to = which == 0 ? stdout : stderr;
  fmt::print(to, "[{}] {}\n", rank, line);
  std::fflush(to);
}

void print_as_json(std::uint32_t rank, int which, std::string_view line) {
  Json event = document("run");
  event["event"] = which == 0 ? "output" : "error_output";
  event["rank"] = rank;
  event["line"] = line;
  print_line(event);
}

class Ranks {
 public:
  explicit Ranks(const Arguments& a) : a_(a) {}

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
    std::string directory = a_.directory;
    if (directory.empty()) {
      HAWSER_TRY_ASSIGN(OwnFolder folder, OwnFolder::make());
      directory = "file:" + folder.path();
      folder_.emplace(std::move(folder));
    }
    for (std::uint32_t rank = 0; rank < a_.ranks; ++rank) {
      const std::string number = std::to_string(rank);
      RankProcess::Environment environment = {{"HAWSER_WORLD_RANK", number},
                                              {"HAWSER_WORLD_LOCAL_RANK", number},
                                              {"HAWSER_WORLD_SIZE", std::to_string(a_.ranks)},
                                              {"HAWSER_DIRECTORY", directory}};
      // All ranks are on this host: no door stands open to others.
      if (std::getenv("HAWSER_LISTEN") == nullptr) environment.emplace_back("HAWSER_LISTEN", "127.0.0.1");
      HAWSER_TRY_ASSIGN(RankProcess process,
                        RankProcess::start(rank, a_.command, environment, a_.common.json ? print_as_json : print_text));
      processes_.push_back(std::move(process));
    }
    return {};
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
    if (have_ended && read_until_ == Instant::max()) read_until_ = now + a_.grace;
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
    (void)poll(fds.data(), fds.size(), kSliceMs);
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
      fmt::print(stderr, "hawser run: {}; the others are ended\n", process.end().message());
      begin_to_end(now);
    }
    if (interrupted() && !is_ending_) begin_to_end(now);
    if (!is_ending_ || now < kill_at_) return;
    kill_at_ = Instant::max();
    for (const RankProcess& process : processes_) process.signal(SIGKILL);
  }

  void begin_to_end(Instant now) {
    is_ending_ = true;
    kill_at_ = now + a_.grace;
    for (const RankProcess& process : processes_) process.signal(SIGTERM);
  }

  const Arguments& a_;
  std::optional<OwnFolder> folder_;
  std::vector<RankProcess> processes_;
  int exit_code_ = 0;
  std::optional<std::uint32_t> first_failed_;
  bool is_ending_ = false;
  Instant kill_at_ = Instant::max();
  Instant read_until_ = Instant::max();  ///< Once all have ended.
};

int run(const Arguments& a) {
  catch_interrupts();
  const Result<int> code = Ranks(a).run();
  return code ? *code : fail("run", a.common.json, code.error());
}

}  // namespace

void add_run(Shell& shell) {
  auto a = std::make_shared<Arguments>();
  CLI::App* command =
      add_command(shell, "run", "Start a program as the ranks of a world on this host", kExamples, a->common);
  command->add_option("-n,--ranks", a->ranks, "How many")->required()->check(CLI::Range(1U, kRanksMax));
  command->add_option("--directory", a->directory,
                      "Where ranks find one another, as the option `directory` takes it (default: a new folder)");
  add_duration(command, "--grace", a->grace, "Between SIGTERM and SIGKILL for the others (default 5s)");
  command->prefix_command();
  on_run(shell, command, [a, command, &shell] {
    a->command = command->remaining();
    a->command.insert(a->command.end(), shell.behind_dashes.begin(), shell.behind_dashes.end());
    if (!a->command.empty()) return run(*a);
    return fail("run", a->common.json,
                Status(Code::kInvalid, "no program is given").with_advice("hawser run -n 4 PROGRAM [ARGUMENTS]"));
  });
}

}  // namespace hawser::cli
