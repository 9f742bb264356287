#pragma once

// RankProcess: a program that `hawser run` started as one rank. Its output comes line by line; it dies with this
// process.
//
// Thread rule: one thread. Lifetime: the destructor kills the program, if it still runs, and reaps it.

#include <sched.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/status.h>

#include "base/fd.h"

namespace hawser::cli {

class RankProcess {
 public:
  static constexpr std::size_t kInputMax = 60 * 1024;  ///< A pipe takes so much at once.
  using Environment = std::vector<std::pair<std::string, std::string>>;
  /// Told of each line of its output (0) or its errors (1), without the end of the line.
  using Lines = std::function<void(std::uint32_t rank, int which, std::string_view line)>;
  /// The program is looked for in PATH. If it cannot start, the process ends with exit code 127. It reads
  /// `input` first, at most kInputMax bytes, and then nothing until end_input; without it, this process's own input.
  /// `processors`: it runs on these alone; without them, where this process may.
  static Result<RankProcess> start(std::uint32_t rank, const std::vector<std::string>& command,
                                   const Environment& environment, Lines lines,
                                   const std::optional<std::string>& input = {},
                                   const std::optional<cpu_set_t>& processors = {});
  RankProcess(RankProcess&& other) noexcept;
  RankProcess& operator=(RankProcess&&) = delete;
  ~RankProcess();

  std::uint32_t rank() const { return rank_; }
  /// From now on the program is starting until it writes this line, which is not told of.
  void await_greeting(std::string_view line) { greeting_ = line; }
  bool is_starting() const { return !greeting_.empty() && fd(0) >= 0; }
  /// The pipe of its output (0) or its errors (1); -1 once that is closed.
  int fd(int which) const { return pipes_[which].get(); }
  /// Tells of what came, by whole lines; of what is left of a line when the pipe is closed, too.
  void pass_on(int which);
  /// True where it has ended. Then `end` says how.
  bool has_ended();
  /// Good, or how it failed: its exit code, or the signal that killed it.
  const Status& end() const { return *ended_; }
  int exit_code() const { return exit_code_; }
  void signal(int number) const;
  /// Its input comes to its end. False: it has none of ours.
  bool end_input();

 private:
  RankProcess(std::uint32_t rank, pid_t pid, base::Fd out, base::Fd err, Lines lines);
  void tell(int which, std::string_view line);

  std::uint32_t rank_;
  Lines lines_;
  pid_t pid_;
  base::Fd pipes_[2];
  base::Fd input_;
  std::string rest_[2];   ///< The beginning of a line whose end has not come.
  std::string greeting_;  ///< Empty: none is awaited, or it has come.
  std::optional<Status> ended_;
  int exit_code_ = 0;
};

}  // namespace hawser::cli
