#pragma once

// An agent's counters as metrics of Prometheus. docs/metrics.md lists them, and says what to alert on.
//
// Thread rule: pure functions, but for serve_metrics. Lifetime: what serve_metrics gives must go before its core.

#include <span>
#include <string_view>

#include <hawser/counters.h>

#include "metrics/exposition.h"
#include "metrics/server.h"

namespace hawser::agent {

class Core;

/// Of more peers those that moved least have no samples of their own; hawser_peers_omitted is their number.
inline constexpr std::size_t kMetricPeersMax = 1000;

void add_metrics(const AgentCounters& counters, metrics::Exposition& to);

// The same in parts. `peers`: how many there are, of which `counters` lists some.
void add_agent_metrics(const AgentCounters& counters, std::size_t peers, metrics::Exposition& to);
void add_peer_metrics(std::string_view agent, std::span<const PeerCounters> peers, metrics::Exposition& to);
void add_path_metrics(std::string_view agent, std::span<const PathCounters> paths, metrics::Exposition& to);

/// Where AgentOptions::metrics says; empty where it is, or where nothing can be served; the log says why.
metrics::Entry serve_metrics(Core& core);

}  // namespace hawser::agent
