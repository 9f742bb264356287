#pragma once

// RankRun: starts the ranks of a world as processes, passes their output on, and ends all when one fails.
//
// Thread rule: one thread. Lifetime: the processes die with it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "cli/rank_launcher.h"
#include "cli/rank_process.h"

namespace hawser::cli {

inline constexpr std::uint32_t kRanksMax = 1024;

/// `hosts` as --hosts takes it ("a,b:4", or a file's name), `ssh` a command by words. Where the launch has no ranks it
/// gets as many as the hosts have slots.
Status place_on_hosts(const std::string& hosts, const std::string& ssh, LaunchOptions& launch);

class RankRun {
 public:
  /// `command` names the command of `hawser` in messages.
  RankRun(const LaunchOptions& launch, std::string command, RankProcess::Lines lines);
  RankRun(const RankRun&) = delete;
  RankRun& operator=(const RankRun&) = delete;

  /// The exit code of the rank that failed first; 0: none did. kCancelled: by Ctrl-C.
  Result<int> run();
  /// After `run`.
  std::optional<std::uint32_t> failed_first() const { return first_failed_; }

 private:
  Status start();
  bool await_turn(std::uint32_t rank);
  bool all_over();
  void pass_on_output();
  void look_at_ends();
  void begin_to_end(Instant now);

  const LaunchOptions& launch_;
  const std::string command_;
  const RankProcess::Lines lines_;
  std::optional<RankLauncher> launcher_;
  std::vector<RankProcess> processes_;
  int exit_code_ = 0;
  std::optional<std::uint32_t> first_failed_;
  bool is_ending_ = false;
  Instant kill_at_ = Instant::max();
  Instant read_until_ = Instant::max();  ///< Once all have ended.
};

}  // namespace hawser::cli
