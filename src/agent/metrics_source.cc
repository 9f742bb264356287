#include "agent/metrics_source.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/core.h"
#include "agent/flow_sums.h"
#include "base/log.h"

namespace hawser::agent {
namespace {

using metrics::Exposition;
using metrics::Label;
using metrics::Labels;

/// `labels` with one more.
std::vector<Label> with(Labels labels, Label more) {
  std::vector<Label> all(labels.begin(), labels.end());
  all.push_back(more);
  return all;
}

void add_latency(Exposition& to, std::string_view name, std::string_view help, Labels labels,
                 const LatencySummary& latency) {
  constexpr double kNanosecond = 1e-9;
  std::array<metrics::Bucket, std::tuple_size_v<decltype(latency.below)>> buckets;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    buckets[i] = {.bound = static_cast<double>(latency_bound_ns(i)) * kNanosecond, .count = latency.below[i]};
  }
  to.histogram(name, help, labels, buckets, latency.count, static_cast<double>(latency.sum_ns) * kNanosecond);
}

void add_flow(Exposition& to, std::string_view prefix, std::string_view of, Labels labels, const FlowCounters& flow) {
  const auto counter = [&](std::string_view name, std::string_view help, Labels its, std::uint64_t value) {
    to.counter(std::string(prefix) + std::string(name), std::string(help) + std::string(of), its, value);
  };
  const auto write = with(labels, {"operation", "write"}), read = with(labels, {"operation", "read"});
  const auto out = with(labels, {"direction", "out"}), in = with(labels, {"direction", "in"});
  counter("bytes_total", "Bytes of transfers that ended well", write, flow.bytes_written);
  counter("bytes_total", "", read, flow.bytes_read);
  counter("transfers_total", "Transfers that ended well", write, flow.writes);
  counter("transfers_total", "", read, flow.reads);
  counter("transfer_errors_total", "Transfers that ended otherwise, cancelled and timed out ones among them", labels,
          flow.errors);
  counter("transfer_cancels_total", "Transfers that were cancelled", labels, flow.cancels);
  counter("transfer_timeouts_total", "Transfers that reached their deadline", labels, flow.timeouts);
  counter("retries_total", "Chunks that were offered again after an error", labels, flow.retries);
  counter("notifications_total", "Notifications", out, flow.notifications_sent);
  counter("notifications_total", "", in, flow.notifications_received);
  counter("messages_total", "Messages on channels", out, flow.messages_sent);
  counter("messages_total", "", in, flow.messages_received);
  add_latency(to, std::string(prefix) + "transfer_seconds",
              std::string("From submit to the end, of transfers that ended well") + std::string(of), labels,
              flow.latency);
}

void add_path(Exposition& to, std::string_view agent, const PathCounters& path) {
  const std::array<Label, 3> labels{Label{"agent", agent}, Label{"peer", path.peer}, Label{"backend", path.backend}};
  to.gauge("hawser_paths_up", "Paths of this backend that carry", labels, path.state == "up" ? 1 : 0);
  const auto out = with(labels, {"direction", "out"}), in = with(labels, {"direction", "in"});
  to.counter("hawser_path_bytes_total", "Payload bytes on the path", out, path.bytes_out);
  to.counter("hawser_path_bytes_total", "", in, path.bytes_in);
  to.counter("hawser_path_chunks_total", "Chunks on the path", labels, path.chunks);
  to.counter("hawser_path_epochs_total", "Times that the path was connected", labels, path.epochs);
  to.counter("hawser_path_errors_total", "Chunks that the path ended with an error", labels, path.errors);
  to.counter("hawser_path_retries_total", "Of those, chunks that were offered again", labels, path.retries);
  add_latency(to, "hawser_path_seconds", "From submit to the end, of transfers whose last chunk the path had", labels,
              path.latency);
}

void add_device(Exposition& to, std::string_view agent, const DeviceCounters& device) {
  const std::string port = std::to_string(device.port);
  const std::array<Label, 4> labels{Label{"agent", agent}, Label{"backend", device.backend},
                                    Label{"device", device.device}, Label{"port", port}};
  const auto out = with(labels, {"direction", "out"}), in = with(labels, {"direction", "in"});
  to.counter("hawser_device_bytes_total", "Payload bytes on the port", out, device.flow.bytes_out);
  to.counter("hawser_device_bytes_total", "", in, device.flow.bytes_in);
  to.counter("hawser_device_faults_total", "Times that the port or its device failed", labels, device.faults);
  to.counter("hawser_device_errors_total", "Completions that were errors", labels, device.flow.errors);
  to.counter("hawser_device_reconnects_total", "Times that a queue pair was ready again", labels,
             device.flow.reconnects);
  to.gauge("hawser_device_queue_pairs", "Queue pairs on the port", labels,
           static_cast<double>(device.queue_pairs_gauge));
}

/// "timed out" is timed_out, as errors' names are in Python.
std::string word_of(std::string_view code) {
  std::string word(code);
  std::ranges::replace(word, ' ', '_');
  return word;
}

void add_admissions(Exposition& to, std::string_view agent, const AdmissionCounters& admissions) {
  const std::array<Label, 2> labels{Label{"agent", agent}, Label{"backend", admissions.backend}};
  to.counter("hawser_admissions_total", "Sessions that peers opened at this agent", labels, admissions.let_in);
  to.counter("hawser_admissions_gave_way_total", "Unproven connections that were ended for newer ones", labels,
             admissions.gave_way);
  to.counter("hawser_admissions_unanswered_total", "First datagrams of strangers that were not answered", labels,
             admissions.unanswered);
  // Those that did not happen yet are told, too: a counter that appears with 1 has no rate.
  for (const Code code : {Code::kDenied, Code::kTimedOut, Code::kCorrupt, Code::kUnsupported, Code::kDisconnected}) {
    to.counter("hawser_refusals_total", "Connections that were turned away, by reason",
               with(labels, {"code", word_of(to_string(code))}), 0);
  }
  for (const auto& [code, times] : admissions.by_code) {
    to.counter("hawser_refusals_total", "", with(labels, {"code", word_of(code)}), times);
  }
}

void add_quotas(Exposition& to, std::string_view agent, const AgentCounters& counters) {
  constexpr std::string_view kHelp = "What peers were refused because it was beyond a quota";
  const std::array<Label, 1> labels{Label{"agent", agent}};
  for (std::size_t quota = 0; quota < backend::kQuotas; ++quota) {
    const std::string_view name = to_string(static_cast<backend::Quota>(quota));
    const auto known = std::ranges::find(counters.quota_refusals, name, [](const auto& each) { return each.first; });
    const std::uint64_t times = known == counters.quota_refusals.end() ? 0 : known->second;
    to.counter("hawser_quota_refusals_total", kHelp, with(labels, {"quota", name}), times);
  }
}

void add_gauges(Exposition& to, Labels labels, const AgentCounters& counters, std::size_t peers) {
  const auto gauge = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    to.gauge(name, help, labels, static_cast<double>(value));
  };
  gauge("hawser_agent_peers", "Peers with a session", peers);
  gauge("hawser_agent_regions", "Regions that are registered", counters.regions_gauge);
  gauge("hawser_agent_grants", "Grants that are open", counters.grants_gauge);
  gauge("hawser_agent_region_bytes", "Bytes of regions that are registered", counters.region_bytes_gauge);
  gauge("hawser_agent_transfers_in_flight", "Transfers in flight", counters.transfers_in_flight_gauge);
  gauge("hawser_agent_notification_bytes", "Notifications that wait for the program, in bytes",
        counters.notification_bytes_gauge);
  to.counter("hawser_agent_events_dropped_total", "Peer events that nobody took in time", labels,
             counters.events_dropped);
}

/// The places of the peers that have samples: those that moved most, where there are many.
std::vector<std::size_t> shown_peers(const AgentCounters& counters) {
  std::vector<std::size_t> peers(counters.peers.size());
  std::iota(peers.begin(), peers.end(), std::size_t{0});
  if (peers.size() <= kMetricPeersMax) return peers;
  const auto moved = [&](std::size_t at) {
    return counters.peers[at].flow.bytes_written + counters.peers[at].flow.bytes_read;
  };
  std::ranges::nth_element(peers, peers.begin() + kMetricPeersMax,
                           [&](std::size_t a, std::size_t b) { return moved(a) > moved(b); });
  peers.resize(kMetricPeersMax);
  return peers;
}

}  // namespace

void add_agent_metrics(const AgentCounters& counters, std::size_t peers, Exposition& to) {
  const std::array<Label, 1> agent{Label{"agent", counters.agent}};
  to.gauge("hawser_agent_info", "1; its labels tell which incarnation runs",
           with(agent, {"incarnation", counters.incarnation}), 1);
  add_flow(to, "hawser_agent_", ", all peers together, those that are gone too", agent, counters.total);
  add_gauges(to, agent, counters, peers);
  to.gauge("hawser_peers_omitted", "Peers without samples of their own, for there are too many", agent,
           static_cast<double>(peers - std::min({peers, counters.peers.size(), kMetricPeersMax})));
  for (const DeviceCounters& device : counters.devices) add_device(to, counters.agent, device);
  for (const AdmissionCounters& each : counters.admissions) add_admissions(to, counters.agent, each);
  add_quotas(to, counters.agent, counters);
}

void add_peer_metrics(std::string_view agent, std::span<const PeerCounters> peers, Exposition& to) {
  for (const PeerCounters& peer : peers) {
    const std::array<Label, 2> labels{Label{"agent", agent}, Label{"peer", peer.peer}};
    add_flow(to, "hawser_peer_", ", by peer", labels, peer.flow);
    to.gauge("hawser_peer_sessions_up", "Sessions with agents of this name that stand", labels,
             peer.state == "up" ? 1 : 0);
  }
}

void add_path_metrics(std::string_view agent, std::span<const PathCounters> paths, Exposition& to) {
  for (const PathCounters& path : paths) add_path(to, agent, path);
}

void add_metrics(const AgentCounters& counters, Exposition& to) {
  add_agent_metrics(counters, counters.peers.size(), to);
  std::set<std::string_view> names;
  for (const std::size_t at : shown_peers(counters)) {
    names.insert(counters.peers[at].peer);
    add_peer_metrics(counters.agent, {&counters.peers[at], 1}, to);
  }
  for (const PathCounters& path : counters.paths) {
    if (names.contains(path.peer)) add_path_metrics(counters.agent, {&path, 1}, to);
  }
}

metrics::Entry serve_metrics(Core& core) {
  if (core.options.metrics.empty()) return {};
  Result<metrics::Entry> entry =
      metrics::serve(core.options.metrics, [&core](Exposition& to) { add_metrics(core.counters(), to); });
  if (entry) {
    HAWSER_LOG(core.log, kInfo, "{}: metrics at http://{}/metrics", core.options.name, entry->address());
    return *std::move(entry);
  }
  HAWSER_LOG(core.log, kWarn, "{}: no metrics are served: {}", core.options.name, entry.error().to_string());
  return {};
}

}  // namespace hawser::agent
