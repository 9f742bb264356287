#pragma once

// RankSeat: what all worlds of one rank share: its agent, the mailbox in it, the thread that drives it.
//
// Thread rule: thread-safe. Lifetime: the last world of the rank closes the agent.

#include <memory>

#include <hawser/agent.h>
#include <hawser/driver.h>

#include "runtime/mailbox.h"
#include "runtime/recorder.h"
#include "runtime/workers.h"

namespace hawser::runtime {

inline constexpr std::size_t kHandlersMax = 4;  ///< Of one rank that run at once.

class RankSeat {
 public:
  /// An agent with these options, `options.driven` or not. Drivers are shared within the process.
  static Result<std::shared_ptr<RankSeat>> open(AgentOptions options);
  /// Writes down what the rank does, beside the agent's status page. Without a page it does not, and without room for
  /// the file it says so in the log.
  void record(const Recorder::Site& site, const LogOptions& log);
  RankSeat() = default;
  ~RankSeat();
  RankSeat(const RankSeat&) = delete;
  RankSeat& operator=(const RankSeat&) = delete;

  Agent agent;
  std::shared_ptr<Mailbox> mailbox;
  Workers workers{kHandlersMax};  ///< For handlers of calls.

 private:
  std::shared_ptr<Driver> driver_;  ///< Null: whoever waits makes the progress.
};

}  // namespace hawser::runtime
