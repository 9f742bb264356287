// A Nic's addresses: how they are read, and read again when the device says that they changed.

#include <algorithm>
#include <utility>

#include "backend/verbs/devices/gid_table.h"
#include "backend/verbs/devices/nic.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::verbs {
namespace {

bool same_address(const Gid& a, const Gid& b) { return a.index == b.index && a.bytes == b.bytes && a.type == b.type; }

}  // namespace

RailPort Nic::rail_now() const {
  RailPort now = rail;
  now.gids = address().gids;
  now.gid = now.gids.front();
  return now;
}

NicAddress Nic::address() const {
  const base::MutexLock lock(mutex_);
  return address_;
}

Gid Nic::gid_for(std::span<const Gid> peer, std::uint32_t further) const {
  const NicAddress now = address();
  const std::vector<Gid> ways = gids_towards(now.gids, port.netdev, peer);
  return ways[further % ways.size()];
}

std::uint8_t Nic::mtu_of(const ibv_port_attr& attr) const {
  // What a port of EFA tells is told, not used.
  const auto now = std::max(static_cast<std::uint8_t>(attr.active_mtu), static_cast<std::uint8_t>(IBV_MTU_256));
  return mtu_max == 0 ? now : std::min(mtu_max, now);
}

void Nic::refresh_mtu() {
  ibv_port_attr attr{};
  if (domain->verbs().query_port(domain->context(), port.number, &attr) != 0) return;
  const base::MutexLock lock(mutex_);
  address_.mtu = mtu_of(attr);
}

void Nic::set_address(NicAddress now) {
  const base::MutexLock lock(mutex_);
  address_ = std::move(now);
}

Result<bool> Nic::refresh_address() {
  ibv_port_attr attr{};
  if (const int error = domain->verbs().query_port(domain->context(), port.number, &attr); error != 0) {
    return base::errno_status(Code::kFailed, base::format("asking port {} of {}", port.number, device.name), error);
  }
  PortInfo fresh = port;
  HAWSER_TRY_ASSIGN(fresh.gids, read_gids(*domain, fresh, attr, sysfs_root));
  HAWSER_TRY_ASSIGN(std::vector<Gid> gids, usable_gids(fresh, gid_index));
  const NicAddress before = address();
  const bool same =
      before.lid == attr.lid && before.mtu == mtu_of(attr) && std::ranges::equal(before.gids, gids, same_address);
  if (!same) set_address({.gids = std::move(gids), .lid = attr.lid, .mtu = mtu_of(attr)});
  return !same;
}

}  // namespace hawser::backend::verbs
