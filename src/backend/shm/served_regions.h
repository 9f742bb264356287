#pragma once

// ServedRegions: which paths were told where a region of this agent lies. Nobody else can be inside of it, so its close
// looks at the pins of these alone. The pins of a thousand peers lie in as many places of memory.
//
// Thread rule: confined to the lane. Memory: 16 bytes for each region index up to the largest that was asked for.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/region_table.h"

namespace hawser::backend::shm {

class ServedRegions {
 public:
  using Path = const void*;

  /// It is told now. The region is there.
  void note(const RegionId& id, Path path) {
    if (all_.size() <= id.index) all_.resize(id.index + std::size_t{1});
    Entry& entry = all_[id.index];
    if (entry.generation != id.generation) entry = {.generation = id.generation, .path = nullptr};
    entry.is_of_several = entry.is_of_several || (entry.path != nullptr && entry.path != path);
    entry.path = path;
  }
  struct Served {
    bool is_any = false;  ///< Some path was told.
    Path only = nullptr;  ///< Null: several were.
  };
  Served of(const RegionId& id) const {
    if (id.index >= all_.size() || all_[id.index].generation != id.generation) return {};
    const Entry& entry = all_[id.index];
    return {.is_any = entry.is_of_several || entry.path != nullptr, .only = entry.is_of_several ? nullptr : entry.path};
  }
  /// The path is gone, and its peer is in no memory of ours any more.
  void forget(Path path) {
    for (Entry& entry : all_) {
      if (entry.path == path && !entry.is_of_several) entry.path = nullptr;
    }
  }

 private:
  struct Entry {
    std::uint32_t generation = 0;  ///< 0 is none's.
    bool is_of_several = false;
    Path path = nullptr;  ///< The last one.
  };
  std::vector<Entry> all_;  ///< By index.
};

}  // namespace hawser::backend::shm
