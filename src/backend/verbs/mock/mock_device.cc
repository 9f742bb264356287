#include "backend/verbs/mock/mock_device.h"

#include <algorithm>

namespace hawser::backend::verbs {

std::vector<Gid> MockDevice::gids_of(std::uint8_t number) const {
  const MockPort& its = port(number);
  if (!its.gids.empty()) return its.gids;
  Gid local, routable;
  local.bytes[0] = 0xfe;
  local.bytes[1] = 0x80;
  local.bytes[14] = number - 1;
  local.bytes[15] = routable.bytes[15] = last_byte;
  local.type = efa ? GidType::kUnknown : ethernet ? GidType::kRoceV1 : GidType::kInfiniBand;
  if (efa || !ethernet) return {local};
  routable.index = 1;
  routable.bytes[10] = routable.bytes[11] = 0xff;
  routable.bytes[12] = 10;
  routable.bytes[14] = number - 1;
  routable.type = GidType::kRoceV2;
  return {local, routable};
}

bool MockDevice::has_gid(std::uint8_t number, std::span<const std::uint8_t, 16> bytes) const {
  return std::ranges::any_of(gids_of(number), [&](const Gid& gid) { return std::ranges::equal(gid.bytes, bytes); });
}

}  // namespace hawser::backend::verbs
