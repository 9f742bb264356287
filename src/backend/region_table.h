#pragma once

// The regions that an agent serves, as its ports look them up on behalf of peers.
//
// An entry is found by index and checked by key, rights and bounds for every access. Closing an entry makes every later
// lookup fail; an access that began before is waited for by the closer (see Port::region_quiet and the lane's lock).
//
// Thread rule: thread-safe. Entries handed out are shared and immutable.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hawser/memory.h>
#include <hawser/status.h>

#include "backend/adopted/foreign_pages.h"
#include "backend/arena.h"
#include "backend/single_use.h"
#include "base/id128.h"
#include "base/mutex.h"

namespace hawser::fileio {
class File;
}

namespace hawser::backend {

struct RegionEntry {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  base::Id128 key;
  std::byte* base = nullptr;
  std::uint64_t size = 0;
  Rights rights = Rights::kNone;
  Device device;
  std::string name;
  std::shared_ptr<Arena> arena;         ///< What it lies in, whole or in part; null for foreign memory.
  std::shared_ptr<ForeignPages> pages;  ///< Of foreign memory of this host; null where nobody asked to hold it.
  std::shared_ptr<fileio::File> file;   ///< Of a region in a file; `base` is null then, addresses are offsets.
  std::uint64_t file_offset = 0;        ///< Where the region begins in the file.
  bool listed = true;                   ///< The card tells of it.
  bool is_grant = false;                ///< It is a part of another region.
  base::Id128 holder;                   ///< Of a grant: the only incarnation that may use it. Zero: any.
  std::shared_ptr<SingleUse> once;      ///< Of a grant for one transfer; else null.
};

/// What names one registration: an index is used again, with another generation.
struct RegionId {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
};

/// Where peers of this host can map the region; nothing for memory that they can only attach to.
std::optional<SharedFile> shared_file(const RegionEntry& entry);

class RegionTable {
 public:
  explicit RegionTable(std::uint32_t limit) : limit_(limit) {}

  /// Fills index and generation of all, or of none: kBusy when there is not room for all within `limit`. They are
  /// immutable from then on.
  Status add(std::span<const std::shared_ptr<RegionEntry>> entries);
  Result<std::shared_ptr<const RegionEntry>> add(RegionEntry entry);
  /// How many more `add` takes.
  std::uint32_t room() const;
  /// From now on no lookup finds them; their indices are kept until `remove`.
  void close(std::span<const RegionId> ids);
  void close(std::uint32_t index, std::uint32_t generation) { close(std::array{RegionId{index, generation}}); }
  /// The indices may be used again, with other generations.
  void remove(std::span<const RegionId> ids);
  void remove(std::uint32_t index, std::uint32_t generation) { remove(std::array{RegionId{index, generation}}); }

  /// For an access by a peer: kDenied for a wrong key or missing right (the same text for both and for no such region,
  /// so nothing can be probed), else the entry. `peer` is the incarnation that asks; zero where that is not known: then
  /// regions for one holder alone are none.
  Result<std::shared_ptr<const RegionEntry>> find(std::uint32_t index, std::uint32_t generation, const base::Id128& key,
                                                  Rights right, const base::Id128& peer = {}) const;
  /// Cheap re-check at the start of a turn.
  bool is_open(std::uint32_t index, std::uint32_t generation) const;
  std::shared_ptr<const RegionEntry> at(std::uint32_t index) const;
  std::vector<std::shared_ptr<const RegionEntry>> all() const;
  std::uint32_t count() const;

 private:
  struct Slot {
    std::shared_ptr<const RegionEntry> entry;  ///< Null: free.
    std::uint32_t generation = 0;
    bool open = false;
  };
  Slot* find(RegionId id) HAWSER_REQUIRES(mutex_);
  const std::uint32_t limit_;
  mutable base::Mutex mutex_;
  std::vector<Slot> slots_ HAWSER_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> free_ HAWSER_GUARDED_BY(mutex_);
  std::uint32_t count_ HAWSER_GUARDED_BY(mutex_) = 0;
};

/// The only peer that may use that region, open or closing; zero: any, or there is no such region.
base::Id128 only_holder(const RegionTable& table, const RegionId& id);

/// Whether [offset, offset + size) lies in a region of `region_size` bytes; safe against overflow.
constexpr bool in_bounds(std::uint64_t offset, std::uint64_t size, std::uint64_t region_size) {
  return offset <= region_size && size <= region_size - offset;
}

}  // namespace hawser::backend
