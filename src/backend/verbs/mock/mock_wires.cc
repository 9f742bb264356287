#include "backend/verbs/mock/mock_wires.h"

#include <algorithm>
#include <cstring>

namespace hawser::backend::verbs {
namespace {

bool answers(const MockQp& qp) { return qp.attr.qp_state == IBV_QPS_RTR || qp.attr.qp_state == IBV_QPS_RTS; }

}  // namespace

std::string MockWires::port_name(const std::string& device, std::uint8_t number) {
  return number == 1 ? device : device + ":" + std::to_string(number);
}

void MockWires::set_link(const std::string& port, bool up) {
  if (up) {
    down_.erase(port);
  } else {
    down_.insert(port);
  }
}

bool MockWires::is_down(const End& end) const {
  return end.device.gone || end.is_removed || down_.contains(port_name(end.device.name, end.qp.attr.port_num));
}

MockWires::Way MockWires::way_of(const MockRequest& request, const End& from, const End* to) const {
  if (to == nullptr || is_down(from) || is_down(*to)) return Way::kLost;
  if (request.qkey != 0) return datagram_way(request, from, *to);
  const bool is_open = is_connected(from, *to) && is_addressed(from, *to) && !is_too_large(request, from, *to);
  return is_open ? Way::kOpen : Way::kLost;
}

MockWires::Way MockWires::datagram_way(const MockRequest& request, const End& from, const End& to) const {
  const MockDevice &here = from.device, &there = to.device;
  if (there.last_byte != request.to_gid) return Way::kLost;
  const bool same_host = &here == &there || (!here.host.empty() && here.host == there.host);
  return same_host || !answers(to.qp) || to.qp.attr.qkey != request.qkey ? Way::kDropped : Way::kOpen;
}

bool MockWires::is_connected(const End& from, const End& to) const {
  // Packets of an earlier connection carry numbers that the queue pair does not expect.
  return answers(to.qp) && to.qp.peer == from.qp.qp_num && to.qp.attr.rq_psn == from.qp.attr.sq_psn;
}

/// Whether packets find the peer's port, and come from an address that ours has.
bool MockWires::is_addressed(const End& from, const End& to) const {
  const ibv_ah_attr& address = from.qp.attr.ah_attr;
  if (!address.is_global) return address.dlid == to.device.port(to.qp.attr.port_num).lid;
  const std::span<const std::uint8_t, 16> raw(address.grh.dgid.raw);
  GidBytes bytes;
  std::ranges::copy(raw, bytes.begin());
  if (dead_gids.contains(bytes)) return false;
  const auto is_source = [&](const Gid& gid) {
    return gid.index == address.grh.sgid_index && !dead_gids.contains(gid.bytes);
  };
  return std::ranges::any_of(from.device.gids_of(from.qp.attr.port_num), is_source) &&
         to.device.has_gid(to.qp.attr.port_num, raw);
}

bool MockWires::is_too_large(const MockRequest& request, const End& from, const End& to) const {
  const std::uint32_t most = std::min({packet_max, 128u << from.device.mtu, 128u << to.device.mtu});
  const std::uint64_t bytes = request.inlined.empty() ? request.bytes() : request.inlined.size();
  return std::min<std::uint64_t>(bytes, 128u << from.qp.attr.path_mtu) > most;
}

}  // namespace hawser::backend::verbs
