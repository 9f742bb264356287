#pragma once

// Stage: two processes with an agent each. The parent measures and initiates; its child is the target, and the partner
// of raw loops. They talk over a socket pair while nothing is measured, and over the board while something is.
//
// Thread rule: one thread. Lifetime: the destructor ends the child.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <hawser/agent.h>
#include <hawser/driver.h>

#include "base/fd.h"
#include "base/try.h"
#include "cli/bench/board.h"
#include "cli/demo_child.h"
#include "cli/demo_control.h"

namespace hawser::cli::bench {

struct StageSpec {
  std::string key;                                ///< Names the specification: rows with the same key share a stage.
  std::vector<BackendSpec> backends;              ///< Empty: the default configuration.
  bool driven = false;                            ///< Both agents have a driver; else both are polled.
  std::vector<BackendSpec> target_backends = {};  ///< For the child's agent, where they differ.
};

struct StageSetup {
  std::string config;                            ///< A TOML file, or empty.
  std::uint64_t arena_bytes = 0;                 ///< Size of the board.
  Duration patience = std::chrono::seconds(60);  ///< For each answer of the child.
};

enum class MemoryKind { kAllocated, kForeign };

/// Memory of the child, registered with its agent.
struct RemoteMemory {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
};

class Stage {
 public:
  static Result<std::unique_ptr<Stage>> open(const StageSpec& spec, const StageSetup& setup);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage();

  const StageSpec& spec() const { return spec_; }
  const StageSetup& setup() const { return setup_; }
  Agent& agent() { return agent_; }
  const Peer& peer() const { return peer_; }
  Board& board() { return *board_; }
  pid_t child_pid() const { return child_->pid(); }

  /// Sends a command and waits for its answer.
  Result<Json> ask(const Json& command);
  /// Runs `body` while the child is in `mode` ("serve", "echo", ...). Returns what the child tells at the end.
  Result<Json> during(Json mode, const std::function<Status()>& body);
  /// As above, for a body that gives a figure.
  Result<double> measure(Json mode, const std::function<Result<double>()>& body);

  /// Memory of the child: registered, touched, and known here.
  Result<RemoteMemory> remote_memory(const std::string& name, std::uint64_t size, MemoryKind kind);
  Status forget_memory(const std::string& name);

  /// Round trip of a cache line between the two processes, ns; 0 where they share one core, negative
  /// when it could not be measured.
  std::int64_t core_round_trip_ns();
  /// Sockets to the child, made at first use: TCP over loopback with large buffers.
  Result<std::vector<int>> raw_sockets(std::size_t count);
  /// Good while the child runs and nobody pressed Ctrl-C.
  Status alive();

 private:
  Stage(StageSpec spec, StageSetup setup) : spec_(std::move(spec)), setup_(std::move(setup)) {}
  Status start();
  Status introduce();
  Control::Idle idle();

  StageSpec spec_;
  StageSetup setup_;
  std::optional<Board> board_;
  std::optional<Child> child_;
  std::optional<Control> control_;
  std::optional<Driver> driver_;
  Agent agent_;
  Peer peer_;
  std::uint32_t phases_ = 0;
  std::vector<base::Fd> sockets_;
};

/// Waits for the transfer, polling, at most `patience`.
Status finish(Agent& agent, const Transfer& transfer, Duration patience = std::chrono::seconds(30));
inline Status run_plan(Agent& agent, const Plan& plan, const SubmitOptions& options = {}) {
  const Result<Transfer> transfer = plan.submit(options);
  if (!transfer) return transfer.error();
  return transfer->done() ? transfer->status() : finish(agent, *transfer);
}
/// Polls until there is a notification.
Status await_notification(Agent& agent, Notification& out, Duration patience = std::chrono::seconds(10));

/// The configuration of the bench's agents: what the caller configured, and the spec's backends.
Result<AgentOptions> bench_agent_options(const std::string& config, const std::vector<BackendSpec>& backends,
                                         std::string name, bool driven);
Json to_json(const std::vector<BackendSpec>& backends);
std::vector<BackendSpec> backends_from(const Json& json);

}  // namespace hawser::cli::bench
