#include "agent/inner_regions.h"

#include "agent/core.h"
#include "base/inside.h"

namespace hawser::agent::inner {

std::optional<MappedPlace> mapped_place(const Agent& agent, std::span<const std::byte> bytes) {
  const auto entry = core_of(agent)->region_book.mapped(bytes);
  if (entry == nullptr) return std::nullopt;
  return MappedPlace{.region = {.index = entry->index, .generation = entry->generation, .key = entry->key},
                     .region_size = entry->size,
                     .offset = static_cast<std::uint64_t>(bytes.data() - entry->base)};
}

std::shared_ptr<const RemoteRegion> told_region(const Peer& peer, const RegionId& id, std::uint64_t size) {
  auto made = std::make_shared<RemoteRegion>();
  made->peer = core_of(peer);
  made->index = id.index;
  made->generation = id.generation;
  made->key = id.key;
  made->size = size;
  made->rights = Rights::kRead;
  return made;
}

Result<std::string> whole_grant(const Region& region) {
  if (core_of(region) == nullptr) return Status(Code::kInvalid, "whole_grant: this handle is empty");
  const LocalRegion& its = *core_of(region);
  return its.core->grant_maker.tell_whole(its);
}

}  // namespace hawser::agent::inner
