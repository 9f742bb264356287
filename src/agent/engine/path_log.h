#pragma once

// PathLog: log lines about paths and sessions. Strangers can cause them at will, so each kind has a gate.
//
// Thread rule: confined to the lane.

#include <cstddef>
#include <string_view>

#include <hawser/status.h>
#include <hawser/time.h>

#include "base/line_gate.h"
#include "base/log.h"

namespace hawser::agent {

class PathLog {
 public:
  PathLog(base::Logger& log, std::string_view agent) : log_(log), agent_(agent) {}

  /// One line a second of what happens to paths of one backend.
  void tell(LogLevel level, std::string_view peer, std::size_t backend, std::string_view backend_name,
            std::string_view what, Instant now);
  /// The peer broke the rules, and its session ends.
  void tell_dropped(std::string_view peer, const Status& cause, Instant now);
  bool is_enabled(LogLevel level) const { return log_.enabled(level); }

 private:
  base::Logger& log_;
  const std::string_view agent_;
  base::LineGate path_gate_;
  base::LineGate drop_gate_;
};

}  // namespace hawser::agent
