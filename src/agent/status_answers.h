#pragma once

// The answers of a status socket (agent/status_desk.h), made of the agents of this process.
//
//   describe [INCARNATION]   JSON, one object a line: who waits for whom since when, and all peers with their paths
//   metrics [INCARNATION]    text for Prometheus, whose last line is "# EOF"
//
// Lines of `describe`: {"schema": "hawser.describe/1", "process", "agents"}; then for each agent {"agent": {...}},
// with the fields of a status page but for its rows, a {"peer": {...}} for each session, a {"waiting": {...}} for each
// thing that waits; {"end": true} at last. An agent whose lane another thread has held for kLanePatience is
// {"busy": {"agent", "incarnation"}} instead: that thread is stuck, or the agent is under heavy load.
//
// No piece holds a lane for longer than a few sessions take. So an answer is not of one instant, and of peers that come
// and go meanwhile it may tell or not.
//
// Thread rule: under the mutex of the ProcessStatus whose roster it is, and without any lane's lock: lanes are tried.

#include <memory>
#include <string_view>

#include "agent/status_desk.h"
#include "agent/status_roster.h"

namespace hawser::agent {

inline constexpr Duration kLanePatience = std::chrono::milliseconds(500);
/// Of an answer to `metrics` without an agent's incarnation. hawser_agents_omitted tells how many more there are.
inline constexpr std::size_t kMetricAgentsMax = 256;

/// Null: no such request. The roster outlives the answer.
std::unique_ptr<StatusAnswer> answer_to(std::string_view request, const StatusRoster& roster);

}  // namespace hawser::agent
