#pragma once

// Mapped: the simulated host memory that two processes share, and the backend over it. The initiator copies by itself,
// in small steps over several turns, under a pin that the target's closer waits for; a crash in the middle leaves what
// was copied. Messages go through a ring that loses nothing but with its peer.
//
// MappedHub stands for the kernel: it brings processes together and tells who died. A MappedLink is what two ports
// share: rings and pins. Whatever a port writes into a link is there for the other at once; only its wake takes time.
//
// Thread rule: the world's. Lifetime: the hub outlives its ports; links are shared by the paths at their ends.

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/sim/host.h"

namespace hawser::sim {

class MappedPort;

struct MappedOptions {
  std::uint64_t step_bytes = 4096;      ///< Copied in one turn of a path: small, so that faults fall between.
  std::size_t queue_chunks = 64;        ///< Chunks that a path takes before it pushes back.
  std::size_t ring_bytes = 256 * 1024;  ///< Of each direction.
  std::uint64_t inline_bytes = 256;     ///< Copied inside submit.
  Duration wake_latency = std::chrono::microseconds(2);
  Duration death_notice_max = std::chrono::milliseconds(20);  ///< Until others know of a death, at most.
  bool may_be_read = false;  ///< Ends read memory of each other that is not registered.
};

/// Where an end is, inside the other's memory.
struct Pin {
  std::uint32_t region = 0;
  std::uint32_t generation = 0;
};

struct MappedLink {
  base::Id128 session;
  std::array<MappedPort*, 2> ports{};  ///< Null once that end has left or died.
  std::array<std::shared_ptr<Host>, 2> hosts;
  std::array<backend::Identity, 2> identities;
  std::array<std::optional<Pin>, 2> pins;                   ///< pins[e]: where end e is.
  std::array<std::vector<Pin>, 2> views;                    ///< views[e]: where end e has a view.
  std::array<std::deque<std::vector<std::byte>>, 2> rings;  ///< rings[e]: what end e sent.
  std::array<std::size_t, 2> ring_used{};
  /// untaken[e]: what end e sent, and what the agent at the other end is not done with.
  std::array<std::deque<std::vector<std::byte>>, 2> untaken;
  bool seen_up = false;                 ///< End 0 knows that it was answered.
  std::array<bool, 2> noticed_death{};  ///< noticed_death[e]: the death of end e is known to the other.
  Status ended;                         ///< Why it ended, once an end has left.
};

/// A connect on its way: answered in a turn of the target, for a stopped process answers nothing.
struct MappedKnock {
  std::shared_ptr<MappedLink> link;
  base::Id128 expects;
  base::Id128 supersedes;
};

class MappedHub {
 public:
  explicit MappedHub(World& world) : world_(world) {}
  World& world() { return world_; }
  MappedOptions& options() { return options_; }

  Status listen(const std::string& address, MappedPort* port);
  void leave(MappedPort* port);
  /// Null: nobody there.
  MappedPort* find(std::string_view address);
  /// The process ended: its pins stay until its peers notice.
  void died(const std::shared_ptr<Host>& host);
  /// Lets the other end look, after a moment.
  void wake(const std::shared_ptr<Host>& host);
  void add(const std::shared_ptr<MappedLink>& link);

  /// What two processes share breaks: both ends' paths go down. Rings of which `loses` says so are gone, with what the
  /// other end has not read of them; of others it reads the rest first. loses[e]: what the e-th of the two sent.
  void sever(const std::shared_ptr<Host>& one, const std::shared_ptr<Host>& other, std::array<bool, 2> loses);
  /// How far a connect from one to the other has come, if one is on its way.
  enum class Phase : std::uint8_t { kKnocking, kAnswered };
  std::optional<Phase> phase_of(const std::shared_ptr<Host>& from, const std::shared_ptr<Host>& to) const;

 private:
  World& world_;
  MappedOptions options_;
  std::map<std::string, MappedPort*, std::less<>> listening_;
  std::vector<std::weak_ptr<MappedLink>> links_;
};

}  // namespace hawser::sim
