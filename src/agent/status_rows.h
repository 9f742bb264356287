#pragma once

// What an agent tells of itself as JSON, for its status page and for the status socket of its process: the fields of
// hawser.status/1 but for its rows, and those rows.
//
// Thread rule: under the lane's lock, but for json_of(WaitingRow).

#include <cstdint>
#include <string>
#include <vector>

#include <hawser/time.h>
#include <nlohmann/json.hpp>

#include "agent/describe.h"
#include "agent/lane_access.h"

namespace hawser::agent {

class Core;
struct Session;

/// The agent's identity and its totals. `opened_at_ns`: since 1970.
nlohmann::json status_head(Core& core, std::int64_t opened_at_ns, Instant now) HAWSER_REQUIRES(in_lane);
/// A session and its paths; with `explained` also each backend, and why it does not lead to the peer.
nlohmann::json status_row(Core& core, const Session& session, bool explained) HAWSER_REQUIRES(in_lane);

/// A Waiting that is kept.
struct WaitingRow {
  explicit WaitingRow(const Waiting& from)
      : who(from.who), what(from.what), peer(from.peer), count(from.count), since(from.since), until(from.until) {}

  std::string who, what, peer;
  std::size_t count;
  Instant since, until;
};
nlohmann::json json_of(const WaitingRow& row);
/// All that waits in the agent for something.
void describe_all(const Core& core, const Visitor& visitor) HAWSER_REQUIRES(in_lane);

/// On one line; bytes that are no UTF-8 are replaced.
std::string one_line(const nlohmann::json& json);

}  // namespace hawser::agent
