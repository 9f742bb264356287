#include "agent/agent_counters.h"

#include <optional>
#include <utility>

#include "agent/core.h"
#include "agent/flow_sums.h"
#include "agent/peer_names.h"

namespace hawser::agent {

void CounterSnapshot::begin(Core& core) {
  counters_ = {};
  latency_.clear();
  counters_.agent = core.options.name;
  counters_.incarnation = base::to_hex(core.identity.incarnation);
  counters_.total = core.past.flow;
  if (core.past.latency != nullptr) latency_.merge(*core.past.latency);
  for (const OpenBackend& open : core.engine.ports().all()) {
    for (DeviceCounters& device : open.port->devices()) {
      device.backend = open.name;
      counters_.devices.push_back(std::move(device));
    }
    if (std::optional<AdmissionCounters> admissions = open.port->admissions()) {
      admissions->backend = open.name;
      counters_.admissions.push_back(*std::move(admissions));
    }
  }
  counters_.transfers_in_flight_gauge = core.engine.transfers().in_flight();
}

void CounterSnapshot::add(const Session& session, bool is_listed) {
  latency_.merge(session.latency);
  add_flow(counters_.total, session.flow);
  if (!is_listed) return;
  PeerCounters& peer = counters_.peers.emplace_back();
  peer.peer = session.peer->name;
  peer.incarnation = base::to_hex(session.peer->incarnation);
  peer.state = name_of(session.machine.public_state());
  peer.wire_version = session.wire_version;
  peer.flow = session.flow;
  peer.flow.latency = summary_of(session.latency);
  for (const PathEntry& entry : session.paths) {
    PathCounters& path = counters_.paths.emplace_back(entry.path->counters());
    path.errors = entry.errors;
    path.retries = entry.retries;
    if (entry.times != nullptr) path.latency = summary_of(entry.times->latency);
  }
}

AgentCounters CounterSnapshot::finish(const Core& core) {
  counters_.total.latency = summary_of(latency_);
  counters_.events_dropped = core.inbox.events_dropped();
  counters_.notification_bytes_gauge = core.inbox.notification_bytes();
  for (const auto& entry : core.regions.all()) {
    ++counters_.regions_gauge;
    counters_.region_bytes_gauge += entry->size;
    if (!entry->pages || !entry->pages->was_asked()) continue;
    const bool is_adopted = entry->pages->file().has_value();
    ++(is_adopted ? counters_.regions_adopted_gauge : counters_.regions_not_adopted_gauge);
    if (is_adopted) counters_.region_bytes_adopted_gauge += entry->size;
  }
  return std::move(counters_);
}

}  // namespace hawser::agent
