// A storm: some processes, each with an agent that several threads use, write to and read from each other at random
// while they are stopped and killed; then all must work again. Over real backends, in real time: what the simulator
// cannot have inside. A seed gives the same dice, not the same run.
//
//   storm [--backends shm,tcp] [--allocated|--adopt] [--workers N] [--seed N] [--seconds N] [--rounds N]
//         [--patience SECONDS] [--no-chaos]

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <optional>
#include <vector>

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "life.h"
#include "strangers.h"

namespace hawser::storm {
namespace {

constexpr int kFaultExit = 3;
constexpr Duration kLongStorm = std::chrono::seconds(15);  ///< One that may take a while longer.
/// So long a worker keeps a stranger at most: two stages of 5 s, and a second for a refusal.
constexpr Duration kKeptMax = std::chrono::seconds(11);

/// What is open, by what it leads to.
std::vector<std::string> descriptors() {
  std::vector<std::string> all;
  std::error_code gone;  // The one that lists them.
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::string where = std::filesystem::read_symlink(each.path(), gone).string();
    const bool is_guard = where.find("userfaultfd") != std::string::npos;  // Of adopted memory: one for the process.
    if (!where.starts_with("/proc/") && !is_guard) all.push_back(std::move(where));
  }
  return all;
}

/// A worker's process: life after life.
[[noreturn]] void work(Board& board, const StormOptions& options, std::size_t worker, std::uint64_t seed) {
  base::Rng rng(seed);
  const std::size_t before = descriptors().size();
  try {
    while (board.phase.load() != Phase::kEnd) {
      Life life(board, options, worker, rng.u64());
      life.run();
    }
  } catch (const Fault&) {
    ::_exit(kFaultExit);
  }
  if (const std::vector<std::string> after = descriptors(); after.size() > before) {
    board.fail(base::format("worker {}: {} descriptors are open after all agents were closed, {} before: {}", worker,
                            after.size(), before, fmt::join(after, ", ")));
    ::_exit(kFaultExit);
  }
  ::_exit(0);
}

class Storm {
 public:
  explicit Storm(const StormOptions& options) : options_(options), rng_(options.seed), pids_(options.workers) {
    void* const memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    board_ = new (memory) Board;
    if (options.strangers) strangers_.emplace(*board_, options, rng_.u64());
  }
  ~Storm() {
    for (const pid_t pid : pids_) {
      if (pid > 0) ::kill(pid, SIGKILL);
      if (pid > 0) ::waitpid(pid, nullptr, 0);
    }
    ::munmap(board_, sizeof(Board));
  }
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

  bool run();

 private:
  void begin(std::size_t worker);
  void kill(std::size_t worker);
  void strike();
  void resume(bool all);
  void look_at_workers();
  void complain_of_strangers();
  void see_strangers_out();
  /// Until `done`, or a fault.
  template <typename Done>
  bool pass(Duration time, Done&& done);
  void report() const;

  struct Stopped {
    std::size_t worker = 0;
    Instant until;
  };

  const StormOptions options_;
  base::Rng rng_;
  std::vector<pid_t> pids_;
  std::vector<Stopped> stopped_;
  Board* board_ = nullptr;
  std::optional<Strangers> strangers_;
  std::size_t kills_ = 0, stops_ = 0;
  bool is_ending_ = false;
};

void Storm::begin(std::size_t worker) {
  const std::uint64_t seed = rng_.u64();
  std::fflush(stdout);  // Or a child prints it once more.
  const pid_t pid = ::fork();
  if (pid < 0) std::abort();
  if (pid == 0 && strangers_) strangers_->leave();
  if (pid == 0) work(*board_, options_, worker, seed);
  pids_[worker] = pid;
}

void Storm::kill(std::size_t worker) {
  ++kills_;
  ++board_->posts[worker].stops;
  board_->posts[worker].end_lives();  // Before: whoever comes next cleans its place away.
  ::kill(pids_[worker], SIGKILL);
  ::waitpid(pids_[worker], nullptr, 0);
  board_->posts[worker].end_lives();  // And one that it began meanwhile.
  std::erase_if(stopped_, [worker](const Stopped& each) { return each.worker == worker; });
  begin(worker);
}

void Storm::strike() {
  const std::size_t worker = rng_.below(options_.workers);
  if (rng_.chance(0.3)) return kill(worker);
  for (const Stopped& each : stopped_) {
    if (each.worker == worker) return;
  }
  ++stops_;
  ++board_->posts[worker].stops;
  ::kill(pids_[worker], SIGSTOP);
  stopped_.push_back({worker, Clock::steady().now() + std::chrono::milliseconds(rng_.range(1, 1200))});
}

void Storm::resume(bool all) {
  std::erase_if(stopped_, [&](const Stopped& each) {
    if (!all && Clock::steady().now() < each.until) return false;
    ++board_->posts[each.worker].stops;
    ::kill(pids_[each.worker], SIGCONT);
    return true;
  });
}

void Storm::complain_of_strangers() {
  std::string kept;
  for (std::size_t worker = 0; worker < options_.workers; ++worker) {
    kept += base::format(" worker {} {}", worker, strangers_->at(worker));
  }
  board_->fail("strangers are kept:" + kept);
}

/// None comes any more, and those that came have their time.
void Storm::see_strangers_out() {
  if (!pass(kKeptMax + options_.slack, [this] { return strangers_->are_out(); })) complain_of_strangers();
}

void Storm::look_at_workers() {
  for (std::size_t worker = 0; worker < pids_.size(); ++worker) {
    int status = 0;
    if (pids_[worker] <= 0 || ::waitpid(pids_[worker], &status, WNOHANG) != pids_[worker]) continue;
    pids_[worker] = -1;
    if (is_ending_ && WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    board_->fail(WIFSIGNALED(status) ? base::format("worker {} died of signal {}", worker, WTERMSIG(status))
                                     : base::format("worker {} ended with {}", worker, WEXITSTATUS(status)));
  }
}

template <typename Done>
bool Storm::pass(Duration time, Done&& done) {
  const Instant end = Clock::steady().now() + time;
  while (!board_->failed()) {
    if (done()) return true;
    if (Clock::steady().now() > end) return false;
    ::poll(nullptr, 0, 2);
    resume(false);
    look_at_workers();
    if (strangers_ && board_->phase.load() == Phase::kStorm) strangers_->act();
  }
  return false;
}

bool Storm::run() {
  for (std::size_t worker = 0; worker < options_.workers; ++worker) begin(worker);
  const Instant end = Clock::steady().now() + options_.time;
  while (!board_->failed() && Clock::steady().now() < end) {
    static_cast<void>(pass(std::chrono::milliseconds(rng_.range(10, 500)), [] { return false; }));
    if (options_.chaos && !board_->failed()) strike();
  }
  resume(true);
  board_->phase = Phase::kCalm;
  const bool is_calm = pass(20 * options_.slack, [this] {
    for (std::size_t i = 0; i < options_.workers; ++i) {
      if (board_->posts[i].calm == 0) return false;
    }
    return true;
  });
  if (!is_calm) board_->fail("it does not become calm");
  if (!pass(options_.slack, [this] { return !strangers_ || strangers_->are_few(); })) complain_of_strangers();
  if (strangers_ && options_.time >= kLongStorm) see_strangers_out();
  is_ending_ = true;
  board_->phase = Phase::kEnd;
  const auto all_ended = [this] { return std::ranges::all_of(pids_, [](pid_t pid) { return pid <= 0; }); };
  if (!pass(20 * options_.slack, all_ended)) board_->fail("a worker does not end");
  report();
  return !board_->failed();
}

void Storm::report() const {
  const Tally& tally = board_->tally;
  std::string bad;
  for (std::size_t code = 0; code < tally.bad.size(); ++code) {
    if (tally.bad[code] == 0) continue;
    bad += base::format("{}{} {}", bad.empty() ? "" : ", ", tally.bad[code].load(), to_string(static_cast<Code>(code)));
  }
  const std::string text = base::format(
      "{}{}, seed {}: {} kills, {} stops; {} agents, {} writes, {} reads ({}); {} ranges compared, {} doubted, {} "
      "notifications, "
      "{} messages, {} additions, {} regions closed, {} dropped, {} strangers\n",
      options_.backends,
      options_.allocated ? " allocated"
      : options_.adopts  ? " adopted"
                         : "",
      options_.seed, kills_, stops_, tally.agents.load(), tally.writes.load(), tally.reads.load(),
      bad.empty() ? "all good" : bad, tally.compared.load(), tally.doubts.load(), tally.notes.load(),
      tally.messages.load(), tally.additions.load(), tally.closed.load(), tally.dropped.load(),
      strangers_ ? strangers_->came() : 0);
  std::fputs(text.c_str(), stdout);
  if (board_->failed()) std::printf("FAILED: %s\n", board_->fault().c_str());
}

}  // namespace
}  // namespace hawser::storm

int main(int argc, char** argv) {
  hawser::storm::StormOptions options;
  unsigned seconds = 5, rounds = 1;
  double patience = 3.0 * HAWSER_TIMEOUT_SCALE;
  bool no_chaos = false;
  CLI::App app("processes that write to each other while they are stopped and killed");
  app.add_option("--backends", options.backends, "of each agent, with commas");
  app.add_flag("--allocated", options.allocated, "memory comes from the agents");
  app.add_flag("--adopt", options.adopts, "memory of the heap is adopted");
  app.add_option("--workers", options.workers)->check(CLI::Range(std::size_t{2}, hawser::storm::kWorkersMax));
  app.add_option("--seed", options.seed);
  app.add_option("--seconds", seconds, "of storm, in each round");
  app.add_option("--rounds", rounds, "each with the next seed");
  app.add_option("--patience", patience, "seconds that anything may take beyond its deadline");
  app.add_flag("--no-chaos", no_chaos, "nobody is stopped or killed");
  CLI11_PARSE(app, argc, argv);
  options.chaos = !no_chaos;
  options.strangers = options.backends.find("tcp") != std::string::npos;
  options.slack = std::chrono::duration_cast<hawser::Duration>(std::chrono::duration<double>(patience));
  options.time = std::chrono::seconds(seconds);
  for (unsigned round = 0; round < rounds; ++round, ++options.seed) {
    if (!hawser::storm::Storm(options).run()) return 1;
  }
  return 0;
}
