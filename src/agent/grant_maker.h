#pragma once

// GrantMaker makes grants: it checks what is asked for, registers an unlisted region over the part of the parent's
// memory, and encodes what the holder needs to know.
//
// Thread rule: thread-safe.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/grant.h>

#include "agent/engine/open_backend.h"
#include "agent/grant_book.h"
#include "agent/grant_ends.h"
#include "agent/lane_access.h"
#include "agent/life.h"
#include "agent/region.h"
#include "agent/region_closer.h"
#include "agent/region_registrar.h"
#include "wire/grant.h"

namespace hawser::agent {

/// What stands behind the owner's handle.
struct GrantCore {
  std::shared_ptr<LocalRegion> region;  ///< The grant's own, a part of its parent's memory.
  std::string bytes;
};

/// What the owner asks for.
struct GrantWish {
  std::uint64_t offset = 0, size = 0;
  Rights rights = Rights::kNone;
  Duration expiry = Duration::zero();
  base::Id128 holder = {};  ///< Zero: anybody.
  bool single_use = false;
};

class GrantMaker {
 public:
  /// What it works on. All of it outlives the maker.
  struct Parts {
    LaneAccess& lane;
    const Clock& clock;
    const Life& life;
    const backend::Identity& identity;
    const std::vector<OpenBackend>& backends;
    RegionRegistrar& registrar;
    RegionCloser& closer;
    GrantBook& book;
    GrantEnds& ends;
  };
  explicit GrantMaker(const Parts& parts) : its_(parts) {}

  Result<std::shared_ptr<const GrantCore>> make(const std::shared_ptr<LocalRegion>& parent, const GrantWish& wish);
  /// The bytes of a grant that is an unlisted region itself: see inner::whole_grant.
  Result<std::string> tell_whole(const LocalRegion& region) const;

 private:
  static Status check(const LocalRegion& parent, const GrantWish& wish);
  static RegionRegistrar::Entry entry_of(const LocalRegion& parent, const GrantWish& wish);
  Result<std::shared_ptr<LocalRegion>> register_it(const std::shared_ptr<LocalRegion>& parent, const GrantWish& wish);
  Result<std::string> encode(const LocalRegion& grant, Duration expiry) const HAWSER_REQUIRES(in_lane);

  const Parts its_;
};

}  // namespace hawser::agent
