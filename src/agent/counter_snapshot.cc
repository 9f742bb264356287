#include "agent/counter_snapshot.h"

#include <optional>
#include <string>
#include <utility>

#include "agent/flow_sums.h"
#include "agent/peer_core.h"
#include "agent/peer_names.h"
#include "agent/session.h"

namespace hawser::agent {
namespace {

void list_session(const Session& session, AgentCounters* counters) {
  PeerCounters peer{.peer = session.peer->name,
                    .incarnation = base::to_hex(session.peer->incarnation),
                    .state = std::string(name_of(session.machine.public_state())),
                    .wire_version = session.wire_version,
                    .flow = session.flow};
  peer.flow.latency = summary_of(session.latency);
  counters->peers.push_back(std::move(peer));
  for (const PathEntry& entry : session.paths) {
    PathCounters& path = counters->paths.emplace_back(entry.path->counters());
    path.errors = entry.errors;
    path.retries = entry.retries;
    if (entry.times != nullptr) path.latency = summary_of(entry.times->latency);
  }
}

void count_backend(const OpenBackend& open, AgentCounters* counters) {
  for (DeviceCounters& device : open.port->devices()) {
    device.backend = open.name;
    counters->devices.push_back(std::move(device));
  }
  if (std::optional<AdmissionCounters> admissions = open.port->admissions()) {
    admissions->backend = open.name;
    counters->admissions.push_back(*std::move(admissions));
  }
}

}  // namespace

void CounterSnapshot::begin(AgentCounters known, const PastFlow& past, std::span<const OpenBackend> backends) {
  counters_ = std::move(known);
  counters_.total = past.flow();
  latency_.clear();
  past.merge_latency_into(latency_);
  for (const OpenBackend& open : backends) count_backend(open, &counters_);
}

void CounterSnapshot::add(const Session& session, bool is_listed) {
  latency_.merge(session.latency);
  add_flow(counters_.total, session.flow);
  if (is_listed) list_session(session, &counters_);
}

AgentCounters CounterSnapshot::finish() {
  counters_.total.latency = summary_of(latency_);
  return std::move(counters_);
}

}  // namespace hawser::agent
