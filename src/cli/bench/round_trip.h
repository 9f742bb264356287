#pragma once

// Round trips that an application sees: a write with a notification, or a notification alone, and the child answers
// with a notification.

#include <cstdint>
#include <vector>

#include "cli/bench/stage.h"

namespace hawser::cli::bench {

/// 8 bytes to memory of the child's, beside any other load. Lives no longer than the stage.
struct Ping {
  Region source;
  Plan plan;
};
Result<Ping> make_ping(Stage& stage);

/// One; the child is in mode "echo".
Status notify_round_trip(Agent& agent, const Plan& plan, Notification& room, const SubmitOptions& options);
/// As many as fit into `budget`. Returns the median, ns; each time is added to `singles`.
Result<double> notify_round_trips(Stage& stage, const Plan& plan, Duration budget, std::vector<std::uint64_t>& singles);
/// As above, by notifications of 8 bytes without a write.
Result<double> message_round_trips(Stage& stage, Duration budget, std::vector<std::uint64_t>& singles);

}  // namespace hawser::cli::bench
