#pragma once

// Where the conformance suite runs: how agents are opened with the backend under test, and how they get on.
//
// A backend of another repository runs the suite so: link the object library `hawser_conformance_suite`, describe each
// way to run it as a Setting, and instantiate (see agent_suite.h).
//
// Thread rule: the test's thread, but for what an Environment does inside. Lifetime: one Environment per test; agents
// belong to it and end with it.

#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <hawser/agent.h>
#include <hawser/driver.h>

namespace hawser::conformance {

inline constexpr Duration kPatience = std::chrono::seconds(30);  ///< No wait of the suite is longer.

class Environment {
 public:
  virtual ~Environment() = default;
  Environment() = default;
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  /// Opens an agent with the backend under test. The environment sets backends, clock and `driven`.
  virtual Result<Agent*> open(AgentOptions options) = 0;
  /// The same without that backend; kUnsupported where an agent cannot live without it.
  virtual Result<Agent*> open_without(AgentOptions options) = 0;
  /// Destroys it.
  virtual void drop(Agent* agent) = 0;
  /// `agent` makes no progress by itself until it is thawed, as if its process were stopped.
  virtual void freeze(Agent* agent) = 0;
  virtual void thaw(Agent* agent) = 0;

  virtual Instant now() const = 0;
  /// Lets all agents work for a moment.
  virtual void pass() = 0;
  /// Lets all agents work until `done` holds or the time is over. Returns what `done` said last.
  virtual bool eventually(const std::function<bool()>& done, Duration timeout = kPatience) = 0;
  /// Runs `call`, which blocks on `on`, while all other agents go on.
  virtual void blocking(Agent& on, const std::function<void()>& call) = 0;
};

/// One way to run the suite.
struct Setting {
  std::string name;         ///< Letters, digits, underscores.
  BackendSpec backend;      ///< What add_backend and explain call it.
  bool self = false;        ///< The backend leads to the agent itself only: both ends are one agent.
  bool allocated = true;    ///< Regions of both ends come from Agent::allocate, else they are foreign memory.
  bool files = false;       ///< The second agent's regions are files, which the tests see mapped.
  bool is_virtual = false;  ///< Time is simulated: descriptors and threads do not fit.
  bool polled = false;      ///< Nothing goes on between the test's own calls.
  /// kUnsupported: does not run here, and why; the tests are skipped with that reason.
  std::function<Result<std::unique_ptr<Environment>>()> make;
  /// Tests (by name) that cannot be passed, and why. They are skipped with that reason.
  std::map<std::string, std::string> skips = {};
};
/// So that GoogleTest prints a name, not bytes.
inline void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name; }

/// In real time: agents polled by the test's thread, or each with a Driver of its own.
struct RealOptions {
  std::vector<BackendSpec> backends;                     ///< The one under test and what goes with it.
  std::vector<BackendSpec> others = {{"loopback", {}}};  ///< For agents without it.
  bool driven = false;
  std::vector<std::string> devices = {};  ///< For verbs: each name of an agent has the next of them, and only that.
  std::function<Result<Agent>(AgentOptions)> open_agent = Agent::open;
};
std::unique_ptr<Environment> make_real_environment(RealOptions options);

}  // namespace hawser::conformance
