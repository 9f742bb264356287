#pragma once

// What tests between processes share: an agent here, another in a PeerProcess, over each way to move bytes.
//
// Thread rule: the test's thread. Time is real: waits have deadlines, and times of detection are printed. Machines are
// noisy, so what is promised in milliseconds must hold once in a few tries.

#include <functional>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hawser/hawser.h>

#include "../must.h"
#include "peer_process.h"

namespace hawser::real {

using namespace std::chrono_literals;

/// What a promise in time is multiplied with, where a sanitizer or an emulator makes all slower.
inline constexpr int kScale = HAWSER_TIMEOUT_SCALE;

inline Instant now() { return Clock::steady().now(); }

/// Passes time until `done` holds. Returns what it said last.
bool eventually(const std::function<bool()>& done, Duration timeout = kPatience);

struct Way {
  std::string name;
  std::string backend;
  bool allocated = false;
  bool adopts = false;  ///< Foreign memory is adopted.
  /// RDMA devices of this process and of the other; empty: all there are.
  std::string devices_here = {}, devices_there = {};

  BackendSpec spec_here() const {
    return {backend, devices_here.empty() ? Params() : Params{{"devices", devices_here}}};
  }
  /// What an agent gets where a test wants `wanted`: an emulated machine is too slow for less than some seconds.
  Duration peer_timeout(Duration wanted) const;
};
/// So that GoogleTest prints a name, not bytes.
inline void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }
std::vector<Way> ways();
inline std::string name_of(const testing::TestParamInfo<Way>& info) { return info.param.name; }

struct Memory {
  std::vector<std::byte> storage;
  Region region;
  std::span<std::byte> bytes;
};

/// An agent of this process with a driver, and its memory.
class Here {
 public:
  Here(const Way& way, const AgentOptions& options);
  ~Here();
  Here(const Here&) = delete;
  Here& operator=(const Here&) = delete;

  Agent& agent() { return *agent_; }
  /// Its memory stays.
  void drop_agent() { *agent_ = Agent(); }
  Memory& add(const std::string& name, std::size_t size);
  Memory& memory(const std::string& name);
  /// Both learn of each other. Gives the peer here; `name_there` gets how the process names this agent.
  Peer meet(PeerProcess& process, std::string* name_there = nullptr);
  Plan plan_write(const Peer& peer, const std::string& ours, const std::string& theirs, std::size_t size);
  Plan plan_read(const Peer& peer, const std::string& theirs, const std::string& ours, std::size_t size);
  /// Waits for the event and gives how long that took since `from`. Takes all that come before it.
  std::optional<Duration> await_event(PeerEvent::Kind kind, const Peer& peer, Instant from,
                                      Duration timeout = kPatience);
  std::optional<Duration> await_down(const Peer& peer, Instant from, Duration timeout = kPatience) {
    return await_event(PeerEvent::Kind::kDown, peer, from, timeout);
  }

 private:
  const Way way_;
  std::optional<Driver> driver_;
  std::optional<Agent> agent_;
  std::vector<std::pair<std::string, std::unique_ptr<Memory>>> memory_;
};

/// Options of tests. Heartbeats are slow, for machines are busy: tests of heartbeats set their own.
AgentOptions quick(const std::string& name);
/// "open" line of a peer for this way; what `more` says goes before the defaults.
std::string peer_line(const Way& way, const std::string& name, const std::string& more = "driven=1");
testing::AssertionResult all_are(std::span<const std::byte> bytes, std::byte value);
/// Waits for the end.
Status finish(Transfer& transfer, Duration timeout = kPatience);
void print_time(const std::string& what, Duration time);

class RealTest : public testing::TestWithParam<Way> {};

}  // namespace hawser::real
