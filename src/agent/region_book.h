#pragma once

// RegionBook: the regions of this agent that all its backends know, until their close is finished.
//
// Thread rule: thread-safe; what changes it holds the lane's lock, too, so that under that lock it stands still.
// Lifetime: it keeps the entries, not the regions: those live as long as handles, plans and transfers refer to them.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "agent/lane_access.h"
#include "agent/mapped_areas.h"
#include "agent/region.h"
#include "base/mutex.h"

namespace hawser::agent {

class RegionBook {
 public:
  using Regions = std::vector<std::shared_ptr<LocalRegion>>;
  using Entries = std::vector<std::shared_ptr<const backend::RegionEntry>>;

  void add(const std::shared_ptr<LocalRegion>& region) HAWSER_REQUIRES(in_lane);
  /// They are being closed: from now on they are in `all` only.
  void close(std::span<const backend::RegionId> ids) HAWSER_REQUIRES(in_lane);
  void remove(std::span<const backend::RegionId> ids) HAWSER_REQUIRES(in_lane);

  /// Those that somebody refers to, also those that are being closed.
  Regions all() const;
  /// As above, without those that are being closed.
  Regions open() const;
  /// By ascending index.
  Entries open_entries() const;
  /// The open region in which this memory lies, where peers of this host can map it; else null.
  std::shared_ptr<const backend::RegionEntry> mapped(std::span<const std::byte> bytes) const;

 private:
  struct Place {
    std::shared_ptr<const backend::RegionEntry> entry;  ///< Null: free.
    std::weak_ptr<LocalRegion> region;
    bool is_open = false;
  };
  /// Null: that region is not in the book.
  Place* find(const backend::RegionId& id) HAWSER_REQUIRES(mutex_);
  template <typename Wants>
  Regions chosen(Wants wants) const;

  mutable base::Mutex mutex_;
  std::vector<Place> places_ HAWSER_GUARDED_BY(mutex_);  ///< By index: indices are dense.
  MappedAreas areas_ HAWSER_GUARDED_BY(mutex_);          ///< Of those that are open.
};

}  // namespace hawser::agent
