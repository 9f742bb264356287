#include "backend/verbs/devices/gid_table.h"

#include <net/if.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/fd.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::verbs {
namespace {

/// Entries of all ports of a device that are asked for at most: a table has 1,024 today.
constexpr std::size_t kEntriesMax = 4096;

GidType type_of(std::uint32_t told, LinkLayer layer) {
  if (layer == LinkLayer::kInfiniBand) return GidType::kInfiniBand;
  if (layer != LinkLayer::kEthernet) return GidType::kUnknown;
  return told == IBV_GID_TYPE_ROCE_V2 ? GidType::kRoceV2 : GidType::kRoceV1;
}

std::string netdev_of(std::uint32_t index) {
  std::array<char, IF_NAMESIZE> name = {};
  return index != 0 && ::if_indextoname(index, name.data()) != nullptr ? std::string(name.data()) : std::string();
}

}  // namespace

Result<std::vector<Gid>> read_gids(const Domain& domain, const PortInfo& port, const ibv_port_attr& attr,
                                   const std::string& sysfs_root) {
  const std::size_t ports = std::max<std::size_t>(domain.attributes().phys_port_cnt, 1);
  const std::size_t length = static_cast<std::size_t>(std::max(attr.gid_tbl_len, 0)) * ports;
  // One more than there can be: the kernel refuses a table without room to spare.
  std::vector<ibv_gid_entry> entries(std::min(length + 1, kEntriesMax));
  const std::ptrdiff_t count = domain.verbs().query_gid_table(domain.context(), entries.data(), entries.size());
  std::vector<Gid> gids;
  if (count == -EOPNOTSUPP) {
    gids = read_gids(sysfs_root, domain.name(), port.number, port.link_layer);
  } else if (count < 0) {
    return base::errno_status(Code::kFailed, base::format("asking {} for its GIDs", domain.name()),
                              static_cast<int>(-count));
  }
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const ibv_gid_entry& entry = entries[static_cast<std::size_t>(i)];
    if (entry.port_num != port.number) continue;
    Gid gid;
    gid.index = entry.gid_index;
    std::memcpy(gid.bytes.data(), entry.gid.raw, gid.bytes.size());
    gid.type = type_of(entry.gid_type, port.link_layer);
    gid.netdev = netdev_of(entry.ndev_ifindex);
    if (!is_zero(gid.bytes)) gids.push_back(std::move(gid));
  }
  std::ranges::sort(gids, {}, &Gid::index);
  add_subnets(gids);
  return gids;
}

Result<std::vector<Gid>> usable_gids(const PortInfo& port, std::optional<std::uint32_t> index) {
  HAWSER_TRY_ASSIGN(const Gid best, best_gid(port, index));
  if (index) return std::vector<Gid>{best};
  std::vector<Gid> gids;
  for (GidScore& score : score_gids(port.gids, port.netdev)) {
    if (score.usable) gids.push_back(std::move(score.gid));
  }
  return gids;
}

}  // namespace hawser::backend::verbs
