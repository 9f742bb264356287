// Counters as JSON.

#include <hawser/counters.h>

#include <nlohmann/json.hpp>

HAWSER_NAMESPACE_BEGIN
namespace {

nlohmann::json json_of(const LatencySummary& latency) {
  return {{"count", latency.count},   {"p50_ns", latency.p50_ns}, {"p90_ns", latency.p90_ns},
          {"p99_ns", latency.p99_ns}, {"max_ns", latency.max_ns}, {"sum_ns", latency.sum_ns},
          {"below", latency.below}};
}

nlohmann::json json_of(const FlowCounters& flow) {
  return {{"bytes_written", flow.bytes_written},
          {"bytes_read", flow.bytes_read},
          {"writes", flow.writes},
          {"reads", flow.reads},
          {"errors", flow.errors},
          {"retries", flow.retries},
          {"cancels", flow.cancels},
          {"timeouts", flow.timeouts},
          {"notifications_sent", flow.notifications_sent},
          {"notifications_received", flow.notifications_received},
          {"messages_sent", flow.messages_sent},
          {"messages_received", flow.messages_received},
          {"latency", json_of(flow.latency)}};
}

nlohmann::json json_of(const QueuePairFlow& flow) {
  return {{"bytes_out", flow.bytes_out},     {"bytes_in", flow.bytes_in},
          {"operations", flow.operations},   {"messages_out", flow.messages_out},
          {"messages_in", flow.messages_in}, {"errors", flow.errors},
          {"reconnects", flow.reconnects},   {"receiver_not_ready", flow.receiver_not_ready}};
}

nlohmann::json json_of(const QueuePairCounters& pair) {
  return {{"number", pair.number},
          {"peer_number", pair.peer_number},
          {"state", pair.state},
          {"epoch", pair.epoch},
          {"device", pair.device},
          {"port", pair.port},
          {"gid", pair.gid},
          {"peer_gid", pair.peer_gid},
          {"mtu_bytes", pair.mtu_bytes},
          {"in_flight", pair.in_flight_gauge},
          {"bytes_in_flight", pair.bytes_in_flight_gauge},
          {"flow", json_of(pair.flow)}};
}

nlohmann::json json_of(const PathCounters& path) {
  nlohmann::json json = {{"peer", path.peer},
                         {"backend", path.backend},
                         {"state", path.state},
                         {"bytes_out", path.bytes_out},
                         {"bytes_in", path.bytes_in},
                         {"chunks", path.chunks},
                         {"messages_out", path.messages_out},
                         {"messages_in", path.messages_in},
                         {"epochs", path.epochs},
                         {"errors", path.errors},
                         {"retries", path.retries},
                         {"latency", json_of(path.latency)},
                         {"bytes_direct", path.bytes_direct},
                         {"bytes_buffered", path.bytes_buffered},
                         {"queue_pairs", nlohmann::json::array()}};
  for (const QueuePairCounters& pair : path.queue_pairs) json["queue_pairs"].push_back(json_of(pair));
  return json;
}

}  // namespace

std::string to_json(const AgentCounters& counters) {
  nlohmann::json json = {{"schema", "hawser.counters/1"},
                         {"agent", counters.agent},
                         {"incarnation", counters.incarnation},
                         {"total", json_of(counters.total)},
                         {"events_dropped", counters.events_dropped},
                         {"notification_bytes", counters.notification_bytes_gauge},
                         {"regions", counters.regions_gauge},
                         {"grants", counters.grants_gauge},
                         {"region_bytes", counters.region_bytes_gauge},
                         {"regions_adopted", counters.regions_adopted_gauge},
                         {"region_bytes_adopted", counters.region_bytes_adopted_gauge},
                         {"regions_not_adopted", counters.regions_not_adopted_gauge},
                         {"transfers_in_flight", counters.transfers_in_flight_gauge},
                         {"peers", nlohmann::json::array()},
                         {"paths", nlohmann::json::array()},
                         {"devices", nlohmann::json::array()},
                         {"quota_refusals", nlohmann::json::object()},
                         {"admissions", nlohmann::json::array()}};
  for (const PeerCounters& peer : counters.peers) {
    json["peers"].push_back({{"peer", peer.peer},
                             {"incarnation", peer.incarnation},
                             {"state", peer.state},
                             {"wire_version", peer.wire_version},
                             {"flow", json_of(peer.flow)}});
  }
  for (const PathCounters& path : counters.paths) json["paths"].push_back(json_of(path));
  for (const DeviceCounters& device : counters.devices) {
    json["devices"].push_back({{"backend", device.backend},
                               {"device", device.device},
                               {"port", device.port},
                               {"queue_pairs", device.queue_pairs_gauge},
                               {"faults", device.faults},
                               {"flow", json_of(device.flow)}});
  }
  for (const AdmissionCounters& each : counters.admissions) {
    json["admissions"].push_back({{"backend", each.backend},
                                  {"let_in", each.let_in},
                                  {"turned_away", each.turned_away},
                                  {"gave_way", each.gave_way},
                                  {"unanswered", each.unanswered},
                                  {"by_code", nlohmann::json::object()}});
    for (const auto& [code, times] : each.by_code) json["admissions"].back()["by_code"][code] = times;
  }
  for (const auto& [quota, times] : counters.quota_refusals) json["quota_refusals"][quota] = times;
  // Names come from peers and may not be UTF-8; a bad byte must not make the whole answer fail.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

HAWSER_NAMESPACE_END
