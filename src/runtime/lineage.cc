#include "runtime/lineage.h"

#include "runtime/digest.h"

namespace hawser::runtime {

Lineage::Child Lineage::group(std::uint64_t world, std::string_view name, std::span<const std::uint32_t> ranks) {
  Digest members;
  members.add(world);
  for (const std::uint32_t rank : ranks) members.add(rank + 1);
  const std::uint32_t order = ++groups_[members.value()];
  Digest digest;
  digest.add(members.value());
  digest.add(order);
  return {.nonce = digest.value(),
          .name = std::string(name) + "/" + std::to_string(groups_.size()) + "." + std::to_string(order)};
}

Lineage::Child Lineage::shrunk(std::uint64_t world, std::string_view name, std::uint64_t epoch,
                               std::span<const std::uint32_t> ranks) {
  Digest digest;
  digest.add(world);
  digest.add(epoch);
  for (const std::uint32_t rank : ranks) digest.add(rank);
  const std::string_view first = epoch == 1 ? name : name.substr(0, name.rfind('@'));
  return {.nonce = digest.value(), .name = std::string(first) + "@" + std::to_string(epoch)};
}

}  // namespace hawser::runtime
