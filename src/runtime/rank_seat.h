#pragma once

// RankSeat: what all worlds of one rank share: its agent, the mailbox in it, the thread that drives it.
//
// Thread rule: thread-safe. Lifetime: the last world of the rank closes the agent.

#include <memory>
#include <optional>

#include <hawser/agent.h>
#include <hawser/driver.h>

#include "runtime/mailbox.h"
#include "runtime/recorder.h"
#include "runtime/relay.h"
#include "runtime/workers.h"

namespace hawser::runtime {

inline constexpr std::size_t kHandlersMax = 4;  ///< Of one rank that run at once.

class RankSeat {
 public:
  /// An agent with these options, `options.driven` or not. Drivers are shared within the process.
  /// `relays`: where the rank is of a sparse world.
  static Result<std::shared_ptr<RankSeat>> open(AgentOptions options, std::optional<Relay::Site> relays);
  /// Writes down what the rank does, beside the agent's status page. Without a page it does not, and without room for
  /// the file it says so in the log.
  void record(const Recorder::Site& site, const LogOptions& log);
  RankSeat() = default;
  ~RankSeat();
  RankSeat(const RankSeat&) = delete;
  RankSeat& operator=(const RankSeat&) = delete;

  /// Whether this rank has a session with that one, by their numbers in the world that was opened.
  bool is_neighbour(std::uint32_t rank) const { return relay == nullptr || relay->is_neighbour(rank); }

  Agent agent;
  std::shared_ptr<Relay> relay;  ///< Null in a full world.
  std::shared_ptr<Mailbox> mailbox;
  Workers workers{kHandlersMax};  ///< For handlers of calls.

 private:
  std::shared_ptr<Driver> driver_;  ///< Null: whoever waits makes the progress.
};

}  // namespace hawser::runtime
