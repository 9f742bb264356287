#include "backend/verbs/path/pair_report.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"

namespace hawser::backend::verbs {
namespace {

std::uint32_t mtu_bytes_of(std::uint8_t code) { return code == 0 ? 0 : 128u << code; }

std::string text_of(const wire::GidBytes& bytes) {
  if (std::ranges::all_of(bytes, [](auto byte) { return byte == decltype(byte){}; })) return {};
  Gid gid;
  std::memcpy(gid.bytes.data(), bytes.data(), bytes.size());
  return gid.text();
}

}  // namespace

QueuePairCounters counters_of(const PathPair& pair) {
  const QueuePair& qp = pair.qp();
  const Nic& nic = qp.nic();
  return {.number = qp.number(),
          .peer_number = pair.peer().number,
          .state = std::string(to_string(pair.state())),
          .epoch = pair.epoch(),
          .device = nic.device.name,
          .port = nic.port.number,
          .gid = qp.gid().text(),
          .peer_gid = text_of(pair.peer().gid),
          .mtu_bytes = mtu_bytes_of(qp.mtu() == 0 ? nic.address().mtu : qp.mtu()),
          .in_flight_gauge = qp.in_flight(),
          .bytes_in_flight_gauge = qp.bytes_posted(),
          .flow = qp.flow()};
}

std::string condition_of(const PathPair& pair) {
  const QueuePair& qp = pair.qp();
  const std::string peer = text_of(pair.peer().gid);
  std::string text = base::format("queue pair {} ({} to {}, {}-byte packets): {}, {} in flight", pair.place().number,
                                  qp.nic().describe(), peer.empty() ? "an address not told yet" : peer,
                                  mtu_bytes_of(qp.mtu()), to_string(pair.state()), qp.in_flight());
  if (qp.is_full()) text += base::format(" (send_depth = {} is full)", qp.depth());
  if (!pair.lost().empty()) text += base::format(", {} lost with the last connection", pair.lost().size());
  if (pair.failures() > 0) text += base::format(", {} attempts in vain", pair.failures());
  return text;
}

std::string describe(const PathPair& pair) {
  const QueuePair& qp = pair.qp();
  const QueuePairFlow& flow = qp.flow();
  return base::format(
      "queue pair {} ({} {} to {}, epoch {}, {}, {} in flight, {} operations, {} errors, {} reconnects)",
      pair.place().number, qp.nic().describe(), qp.number(), pair.peer().number, pair.epoch(), to_string(pair.state()),
      qp.in_flight(), flow.operations, flow.errors, flow.reconnects);
}

}  // namespace hawser::backend::verbs
