#include "agent/agent_counters.h"

#include <optional>
#include <string>
#include <utility>

#include "agent/flow_sums.h"
#include "agent/peer_core.h"
#include "agent/peer_names.h"
#include "agent/session.h"

namespace hawser::agent {
namespace {

void count_session(const Session& session, AgentCounters* counters) {
  PeerCounters peer{.peer = session.peer->name,
                    .incarnation = base::to_hex(session.peer->incarnation),
                    .state = std::string(name_of(session.machine.public_state())),
                    .wire_version = session.wire_version,
                    .flow = session.flow};
  peer.flow.latency = summary_of(session.latency);
  counters->peers.push_back(std::move(peer));
  add_flow(counters->total, session.flow);
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

void count_traffic(const PastFlow& past, std::span<Session* const> sessions, std::span<const OpenBackend> backends,
                   AgentCounters* counters) {
  base::Histogram latency;
  counters->total = past.flow();
  past.merge_latency_into(latency);
  for (const Session* const session : sessions) {
    count_session(*session, counters);
    latency.merge(session->latency);
  }
  counters->total.latency = summary_of(latency);
  for (const OpenBackend& open : backends) count_backend(open, counters);
}

void count_inbox(const Inbox& inbox, AgentCounters* counters) {
  counters->events_dropped = inbox.events_dropped();
  counters->notification_bytes_gauge = inbox.notification_bytes();
}

void count_regions(const backend::RegionTable& regions, AgentCounters* counters) {
  for (const auto& entry : regions.all()) {
    ++counters->regions_gauge;
    counters->region_bytes_gauge += entry->size;
    if (!entry->pages || !entry->pages->was_asked()) continue;
    const bool is_adopted = entry->pages->file().has_value();
    ++(is_adopted ? counters->regions_adopted_gauge : counters->regions_not_adopted_gauge);
    if (is_adopted) counters->region_bytes_adopted_gauge += entry->size;
  }
}

}  // namespace hawser::agent
