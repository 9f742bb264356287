#pragma once

// MappedAreas: which region that peers of this host can map some memory lies in.
//
// Regions may overlap. Of several that begin at one address the largest is kept, and a look goes back over a few that
// begin before the address: what is not found counts as not mapped.
//
// Thread rule: its user's lock. Lifetime: keeps the regions' entries.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <span>

#include "backend/region_table.h"

namespace hawser::agent {

class MappedAreas {
 public:
  using Entry = std::shared_ptr<const backend::RegionEntry>;

  /// One that cannot be mapped, or that no card lists, is passed over.
  void add(const Entry& entry) {
    if (!entry->listed || entry->is_grant || entry->base == nullptr || !backend::shared_file(*entry)) return;
    Entry& there = areas_[entry->base];
    if (there == nullptr || there->size < entry->size) there = entry;
  }
  void remove(const backend::RegionEntry& entry) {
    const auto found = areas_.find(entry.base);
    if (found != areas_.end() && found->second.get() == &entry) areas_.erase(found);
  }
  /// A region that peers may read and in whose mapped part all of the bytes lie; null: there is none.
  Entry find(std::span<const std::byte> bytes) const {
    auto at = areas_.upper_bound(bytes.data());
    for (int looks = 0; looks < kLooks && at != areas_.begin(); ++looks) {
      const Entry& entry = (--at)->second;
      if (allows(entry->rights, Rights::kRead) && holds(*entry, bytes)) return entry;
    }
    return nullptr;
  }

 private:
  static constexpr int kLooks = 4;

  static bool holds(const backend::RegionEntry& entry, std::span<const std::byte> bytes) {
    const std::optional<backend::SharedFile> file = backend::shared_file(entry);
    const auto offset = static_cast<std::uint64_t>(bytes.data() - entry.base);
    return file && offset >= file->head && file->head + file->tail <= entry.size &&
           backend::in_bounds(offset, bytes.size(), entry.size - file->tail);
  }

  std::map<const std::byte*, Entry, std::less<>> areas_;
};

}  // namespace hawser::agent
