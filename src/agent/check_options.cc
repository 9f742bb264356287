#include "agent/check_options.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "proto/notify_credit.h"
#include "wire/limits.h"
#include "wire/stream_frames.h"

namespace hawser::agent {
namespace {

/// A name for an error: what cannot be printed is a question mark, and no more than a line of it is.
std::string printable(std::string_view name) {
  constexpr std::size_t kShown = 60;
  std::string text(name.substr(0, kShown));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return "'" + text + (name.size() > kShown ? "'..." : "'");
}

Status check_limits(const AgentLimits& limits) {
  struct Limit {
    std::string_view name;
    std::uint32_t value, least, most;
  };
  constexpr std::uint32_t kAny = std::numeric_limits<std::uint32_t>::max();
  for (const Limit& limit :
       {Limit{"transfers", limits.transfers, 1, 1u << 24}, Limit{"peers", limits.peers, 1, kAny},
        Limit{"regions", limits.regions, 1, kAny}, Limit{"grants", limits.grants, 1, kAny},
        Limit{"events", limits.events, 1, kAny},
        Limit{"notification_bytes", limits.notification_bytes, proto::kNotificationCostMax, kAny},
        Limit{"notification_bytes_total", limits.notification_bytes_total, proto::kNotificationCostMax, kAny},
        Limit{"peer_connections", limits.peer_connections, 1, kAny},
        Limit{"peer_operations", limits.peer_operations, 1, kAny},
        Limit{"peer_bytes", limits.peer_bytes, wire::kPayloadMax, kAny},
        Limit{"peer_regions", limits.peer_regions, 1, kAny}}) {
    if (limit.value >= limit.least && limit.value <= limit.most) continue;
    return Status(Code::kInvalid, "Agent::open: limits." + std::string(limit.name) + " = " +
                                      std::to_string(limit.value) + " must be from " + std::to_string(limit.least) +
                                      " to " + std::to_string(limit.most));
  }
  return {};
}

}  // namespace

Status check_options(const AgentOptions& options) {
  if (!wire::is_agent_name(options.name)) {
    return Status(Code::kInvalid, "Agent::open: name " + printable(options.name) + " of " +
                                      std::to_string(options.name.size()) +
                                      " bytes is not 1 to 255 bytes without control characters");
  }
  const std::pair<std::string_view, Duration> times[] = {{"heartbeat", options.heartbeat},
                                                         {"peer_timeout", options.peer_timeout},
                                                         {"default_deadline", options.default_deadline},
                                                         {"identity.look", options.identity.look}};
  for (const auto& [name, value] : times) {
    if (value > Duration::zero()) continue;
    return Status(Code::kInvalid,
                  "Agent::open: " + std::string(name) + " = " + std::to_string(value.count()) + " ns must be positive");
  }
  if (!options.identity.folder.empty() && options.security == Security::kNone) {
    return Status(Code::kInvalid, "Agent::open: an identity is shown over TLS, and security `none` has none")
        .with_advice("leave out one of the two options");
  }
  return check_limits(options.limits);
}

}  // namespace hawser::agent
