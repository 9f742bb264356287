#pragma once

// The inner door, regions: what layers of this library know of memory that peers of one host map.
//
// Thread rule: thread-safe, without the lane's lock.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <hawser/agent.h>
#include <hawser/memory.h>

#include "agent/region.h"

namespace hawser::agent::inner {

/// Where memory of this agent lies, as its peers are told.
struct MappedPlace {
  RegionId region;
  std::uint64_t region_size = 0;  ///< Bytes.
  std::uint64_t offset = 0;       ///< Where in the region the memory begins, bytes.
};

/// The region of this agent in which the memory lies, where peers of this host can map it and may read it. None: the
/// memory is in no region, or in one that is foreign, unlisted or only to be written.
std::optional<MappedPlace> mapped_place(const Agent& agent, std::span<const std::byte> bytes);
/// The peer's region of which it told that, for Carrier::view.
std::shared_ptr<const RemoteRegion> told_region(const Peer& peer, const RegionId& id, std::uint64_t size);

/// The bytes of a grant of all of an unlisted region, with its rights, for anybody, until the region is closed. Nothing
/// is registered for it: the region itself is what its holders use. GPU memory can be given so, for nothing ends before
/// the region does. kInvalid: the region is listed, is closed, or gives no right.
Result<std::string> whole_grant(const Region& region);

}  // namespace hawser::agent::inner
