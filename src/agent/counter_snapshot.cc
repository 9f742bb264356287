#include "agent/counter_snapshot.h"

#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include "agent/agent_counters.h"
#include "agent/core.h"
#include "agent/flow_sums.h"

namespace hawser::agent {
namespace {

template <typename Row>
void append(std::vector<Row>& to, std::vector<Row>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

void CounterSnapshot::begin(Core& core) {
  counters_ = {};
  latency_.clear();
  count_traffic(core.past, {}, core.engine.ports().all(), &counters_);
  counters_.agent = core.options.name;
  counters_.incarnation = base::to_hex(core.identity.incarnation);
  core.past.merge_latency_into(latency_);
  counters_.transfers_in_flight_gauge = core.engine.transfers().in_flight();
  counters_.quota_refusals = core.peer_guard->refusals();
}

void CounterSnapshot::add(Session& session, bool is_listed) {
  latency_.merge(session.latency);
  add_flow(counters_.total, session.flow);
  if (!is_listed) return;
  const std::array<Session*, 1> one{&session};
  AgentCounters its;
  count_traffic(PastFlow(), one, {}, &its);
  append(counters_.peers, its.peers);
  append(counters_.paths, its.paths);
}

AgentCounters CounterSnapshot::finish(const Core& core) {
  counters_.total.latency = summary_of(latency_);
  count_inbox(core.inbox, &counters_);
  count_regions(core.regions, &counters_);
  return std::move(counters_);
}

}  // namespace hawser::agent
