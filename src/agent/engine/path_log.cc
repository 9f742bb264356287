#include "agent/engine/path_log.h"

#include <cstdint>

#include "base/shown.h"

namespace hawser::agent {

void PathLog::tell(LogLevel level, std::string_view peer, std::size_t backend, std::string_view backend_name,
                   std::string_view what, Instant now) {
  if (!log_.enabled(level)) return;
  const auto kind = static_cast<std::uint64_t>(backend) * 2 + (level == LogLevel::kWarn ? 1 : 0);
  if (const auto held_back = path_gate_.pass_kind(kind, now)) {
    log_.write(level, "{}: the path to {} over {} {}{}", agent_, base::shown(peer), backend_name, what,
               base::LineGate::more(*held_back));
  }
}

void PathLog::tell_dropped(std::string_view peer, const Status& cause, Instant now) {
  if (const auto held_back = drop_gate_.pass_kind(static_cast<std::uint64_t>(cause.code()), now)) {
    HAWSER_LOG(log_, kWarn, "{}: dropping {}: {}{}", agent_, peer, cause.to_string(), base::LineGate::more(*held_back));
  }
}

}  // namespace hawser::agent
