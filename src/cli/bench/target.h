#pragma once

// TargetProcess: the bench's second process. It owns the target memory, answers notifications, and is the other side of
// raw loops. It obeys the parent's commands; see stage.h for the parent's side.
//
// Every command {"kind": ...} is answered with {"kind": "done", ...}; "phase" also with {"kind": "ended", ...} once the
// parent has raised the board's word. An error is answered with {"kind": "error"} and ends the process.
//
// Thread rule: one thread. Lifetime: the control line outlives it.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <hawser/agent.h>
#include <hawser/driver.h>

#include "base/fd.h"
#include "cli/bench/board.h"
#include "cli/demo_control.h"

namespace hawser::cli::bench {

class TargetProcess {
 public:
  explicit TargetProcess(Control& control) : control_(control) {}
  TargetProcess(const TargetProcess&) = delete;
  TargetProcess& operator=(const TargetProcess&) = delete;
  ~TargetProcess();

  Status run();

 private:
  using Over = std::function<bool()>;
  struct Memory {
    Region region;
    std::span<std::byte> own;  ///< Mapped by this class when the memory is foreign to Hawser.
  };

  // target.cc: commands.
  Result<Json> obey(const Json& command);
  Result<Json> open(const Json& command);
  Result<Json> memory(const Json& command);
  Result<Json> forget(const Json& command);
  Result<Json> fill_memory(const Json& command);
  Result<Json> sum_memory(const Json& command);
  Result<Json> raw_sockets(const Json& command);
  Result<Json> more_agents(const Json& command);
  Result<Json> pong(const Json& command);
  Result<std::span<std::byte>> bytes_of(const Json& command) const;
  Result<Json> card() const;
  Control::Idle idle();
  void poll_all();

  // target_modes.cc: phases.
  Result<Json> phase(const Json& command);
  Status run_mode(const Json& command, const Over& over);
  Status serve(const Over& over);
  Status rest(const Over& over);
  Status echo(const Over& over);
  Status heed(const Over& over);
  Status messages(const Over& over);
  Status pong_words(const Over& over);
  Status consume(const Json& command, const Over& over);
  Status stream(const Json& command, const Over& over);
  template <typename See>
  Status take_notifications(const Over& over, const See& see);
  Status answer(const Peer& peer, std::string_view text, const Over& over);

  Control& control_;
  std::string config_;
  std::optional<Board> board_;
  std::optional<Driver> driver_;
  int core_ = -1;
  Agent agent_;
  std::vector<Agent> more_;
  std::vector<Region> more_regions_;
  std::map<std::string, Memory> memories_;
  std::optional<Plan> pong_;  ///< Writes this side's word back.
  /// The parent may have written the next one before the phase that answers it has begun here.
  std::uint64_t pong_answered_ = 0;
  std::vector<base::Fd> sockets_;
};

/// Runs until the parent says quit or is gone. Returns the exit code of the process.
int run_target(base::Fd control);

}  // namespace hawser::cli::bench
