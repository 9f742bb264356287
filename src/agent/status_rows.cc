#include "agent/status_rows.h"

#include "agent/core.h"
#include "agent/flow_sums.h"
#include "agent/peer_names.h"
#include "agent/plan.h"
#include "base/format.h"
#include "base/shown.h"

namespace hawser::agent {
namespace {

using Json = nlohmann::json;

/// Each backend that opened, and why it does not lead to the peer; an empty reason: it does, or was not tried yet.
Json ways_json(Core& core, PeerCore& peer) HAWSER_REQUIRES(in_lane) {
  Json ways = Json::array();
  for (const inner::Way& way : ways_of(core, peer)) {
    Json row = {{"backend", way.backend}};
    if (!way.why.ok()) row["why"] = base::shown(way.why.to_string());
    ways.push_back(std::move(row));
  }
  return ways;
}

}  // namespace

Json status_head(Core& core, std::int64_t opened_at_ns, Instant now) {
  const Engine& engine = core.engine;
  FlowCounters total = core.past.flow();
  for (const Session* session : engine.sessions().all()) add_flow(total, session->flow);
  Json json = {{"schema", "hawser.status/1"},
               {"agent", core.options.name},
               {"incarnation", base::to_hex(core.identity.incarnation)},
               {"is_driven", core.identity.driven},
               {"opened_at_ns", opened_at_ns},
               {"at_ns", now.ns()},
               {"sessions", engine.sessions().all().size()},
               {"in_flight", engine.transfers().in_flight()},
               {"bytes_written", total.bytes_written},
               {"bytes_read", total.bytes_read},
               {"transfers", total.writes + total.reads},
               {"errors", total.errors},
               {"messages_sent", total.messages_sent},
               {"messages_received", total.messages_received},
               {"closed_backends", Json::array()}};
  for (const BackendReport& report : core.reports()) {
    if (report.open) continue;
    json["closed_backends"].push_back({{"backend", report.name}, {"why", base::shown(report.cause.to_string())}});
  }
  return json;
}

Json status_row(Core& core, const Session& session, bool explained) {
  const LatencySummary latency = summary_of(session.latency);
  Json json = {{"peer", session.peer->name},
               {"state", name_of(session.machine.public_state())},
               {"wire_version", session.wire_version},
               {"bytes_written", session.flow.bytes_written},
               {"bytes_read", session.flow.bytes_read},
               {"errors", session.flow.errors},
               {"p50_ns", latency.p50_ns},
               {"p99_ns", latency.p99_ns},
               {"paths", Json::array()}};
  for (const PathEntry& entry : session.paths) {
    const PathCounters path = entry.path->counters();
    json["paths"].push_back({{"backend", path.backend},
                             {"state", path.state},
                             {"bytes_out", path.bytes_out},
                             {"bytes_in", path.bytes_in},
                             {"errors", entry.errors},
                             {"about", base::shown(entry.path->describe())}});
  }
  if (explained) json["ways"] = ways_json(core, *session.peer);
  return json;
}

Json json_of(const WaitingRow& row) {
  Json json = {{"who", row.who}, {"what", row.what}, {"peer", row.peer}, {"count", row.count}};
  if (row.since != Instant::min()) json["since_ns"] = row.since.ns();
  if (row.until != Instant::max()) json["until_ns"] = row.until.ns();
  return json;
}

void describe_all(const Core& core, const Visitor& visitor) {
  core.engine.describe(visitor);
  core.presence.describe(visitor);
  if (core.revocation_watch != nullptr) core.revocation_watch->describe(visitor);
  core.region_closer.describe(visitor);
}

std::string one_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace hawser::agent
