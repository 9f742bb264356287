#pragma once

// What stands behind the door's memory types: regions of this agent, regions of peers, tables over either.
//
// Lifetime: a LocalRegion lives as long as a handle, a range, a table or a plan refers to it; its registration ends
// when the Region handle closes it. Thread rule: immutable but for the fields that say otherwise.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hawser/memory.h>

#include "agent/one_use.h"
#include "agent/region_extras.h"
#include "backend/region_table.h"
#include "plan/table_shape.h"

namespace hawser::agent {

class Core;
struct PeerCore;

enum class RegionState : std::uint8_t { kOpen, kClosing, kClosed };

struct LocalRegion {
  LocalRegion(std::shared_ptr<Core> its_core, std::shared_ptr<const backend::RegionEntry> its_entry,
              bool has_huge_pages)
      : core(std::move(its_core)), entry(std::move(its_entry)), huge_pages(has_huge_pages) {}

  const std::shared_ptr<Core> core;
  const std::shared_ptr<const backend::RegionEntry> entry;
  const bool huge_pages;
  std::atomic<RegionState> state{RegionState::kOpen};
  std::uint32_t users = 0;      ///< Transfers in flight that touch it from this side. Under the lane's lock.
  std::uint32_t watchers = 0;   ///< Threads that wait for a word of it. Under the lane's lock.
  std::uint32_t newcomers = 0;  ///< Backends that are being added and told of it just now. Under the lane's lock.
  /// An unlisted region: what backends want its holders to know. Under the lane's lock.
  RegionExtras extras = {};
  /// A grant: the region that it is a part of; else null. Set once, under the lane's lock.
  std::shared_ptr<LocalRegion> parent = {};
  std::uint32_t grants = 0;  ///< How many grants of this region are open or being made. Under the lane's lock.
  bool is_ending = false;    ///< A grant that a job is to close. Under the lane's lock.
  /// Who used it when its agent let go of it; nobody knows any more when that ends. Under the lane's lock.
  std::string left_to = {};
};

/// Whether a 64-bit word that a processor can work on in one step lies there. Regions may begin at odd addresses.
inline bool is_word_at(const backend::RegionEntry& entry, std::uint64_t offset) {
  constexpr std::uint64_t kSize = sizeof(std::uint64_t);
  return entry.base != nullptr && entry.device.kind == DeviceKind::kHost &&
         backend::in_bounds(offset, kSize, entry.size) && offset % kSize == 0 &&
         reinterpret_cast<std::uintptr_t>(entry.base) % kSize == 0;
}

/// What a card's entry stands for: an index is used again with another generation, and keys are never guessed.
struct RegionId {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  base::Id128 key;
  friend bool operator==(const RegionId&, const RegionId&) = default;
};

/// What a table carries instead of the key: it tells whether a region is the one that the table was made for, also when
/// another incarnation of the peer has one with the same index and generation.
std::uint64_t mark_of(const RegionId& id);

/// Until when a grant holds, as far as its holder can know.
struct GrantTerms {
  Duration lifetime = Duration::zero();  ///< On the owner's clock; zero: until it is revoked.
  /// By the holder's clock, counted from the import: it has surely expired then.
  Instant expired_by = Instant::max();
};

struct RemoteRegion {
  std::weak_ptr<PeerCore> peer;
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  base::Id128 key;
  std::uint64_t size = 0;
  Rights rights = Rights::kNone;
  Device device;
  std::string name;
  /// Per backend name, what its card entry says beyond the key. Mostly empty.
  std::vector<std::pair<std::string, std::string>> extras;
  std::optional<GrantTerms> grant;  ///< It came by a grant, and no card names it.
  std::shared_ptr<OneUse> once;     ///< The grant is for one transfer; else null.
};

/// The peer's region as a card's entry, a grant or this agent's own table tells of it, without extras.
template <typename Told>
std::shared_ptr<RemoteRegion> remote_region(std::weak_ptr<PeerCore> peer, const Told& told, std::string name) {
  auto made = std::make_shared<RemoteRegion>();
  made->peer = std::move(peer);
  made->index = told.index;
  made->generation = told.generation;
  made->key = told.key;
  made->size = told.size;
  made->rights = told.rights;
  made->device = told.device;
  made->name = std::move(name);
  return made;
}

/// kDenied: why the grant of this region serves no more.
Status grant_ended(const RemoteRegion& region, std::string_view call, Instant now);

/// A prepared table: one region and a shape. Exactly one of local and remote is set when `status` is good.
struct TableCore {
  Status status;
  std::shared_ptr<LocalRegion> local;
  std::shared_ptr<const RemoteRegion> remote;
  plan::TableShape shape;
};

/// A table that can't be made carries the reason.
RangeTable make_table(std::shared_ptr<LocalRegion> region, std::span<const StridedRange> ranges);
RangeTable make_table(std::shared_ptr<const RemoteRegion> region, std::span<const StridedRange> ranges);
RangeTable make_block_table(std::shared_ptr<LocalRegion> region, std::uint64_t block_bytes);
RangeTable make_block_table(std::shared_ptr<const RemoteRegion> region, std::uint64_t block_bytes);
RangeTable failed_table(Status status);

}  // namespace hawser::agent
