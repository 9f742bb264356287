#pragma once

// GrantBook: the grants of this agent that are open or being closed, by region and by expiry. A grant is a region of
// its own, unlisted, over a part of its parent's memory.
//
// The parent is not quiet while grants of it are left, or being made: LocalRegion::grants counts them.
//
// Thread rule: under the lane's lock. Lifetime: it keeps grants until they are closed.
// Bound: `limit` grants.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "agent/lane_access.h"
#include "agent/region.h"

namespace hawser::agent {

class GrantBook {
 public:
  using Grants = std::vector<std::shared_ptr<LocalRegion>>;

  explicit GrantBook(std::uint32_t limit) : limit_(limit) {}

  /// A place for a grant that is about to be made: the parent's close waits from now on. kBusy at the limit, kInvalid
  /// when the parent is closed.
  Status begin(LocalRegion& parent) HAWSER_REQUIRES(in_lane);
  /// It will not be made.
  void give_up(LocalRegion& parent) HAWSER_REQUIRES(in_lane);
  /// It was made, and is in all books. False: it was closed meanwhile, or the parent is being closed; then the caller
  /// drops it.
  bool add(const std::shared_ptr<LocalRegion>& parent, const std::shared_ptr<LocalRegion>& grant, Instant expires)
      HAWSER_REQUIRES(in_lane);
  /// It is closed. Nothing for a region that is no grant.
  void remove(const LocalRegion& grant) HAWSER_REQUIRES(in_lane);
  /// The agent ends.
  void clear() HAWSER_REQUIRES(in_lane);

  /// Those of the region that are not closed.
  Grants of(const LocalRegion& parent) const HAWSER_REQUIRES(in_lane);
  /// Null: there is none.
  std::shared_ptr<LocalRegion> find(const backend::RegionId& id) const HAWSER_REQUIRES(in_lane);
  /// Each is given once; it stays in the book until it is closed.
  Grants take_expired(Instant now) HAWSER_REQUIRES(in_lane);
  /// Instant::max(): never.
  Instant next_expiry() const HAWSER_REQUIRES(in_lane) {
    return expiries_.empty() ? Instant::max() : expiries_.begin()->first;
  }
  std::size_t count() const HAWSER_REQUIRES(in_lane) { return count_; }

 private:
  using Key = std::uint64_t;  ///< Generation and index.
  struct Given {
    std::shared_ptr<LocalRegion> grant;
    Key parent = 0;
    Instant expires;
  };

  const std::uint32_t limit_;
  std::size_t count_ HAWSER_GUARDED_BY(in_lane) = 0;  ///< Also those that are being made.
  std::map<Key, Given> given_ HAWSER_GUARDED_BY(in_lane);
  std::set<std::pair<Key, Key>> by_parent_ HAWSER_GUARDED_BY(in_lane);  ///< Parent and grant.
  std::set<std::pair<Instant, Key>> expiries_ HAWSER_GUARDED_BY(in_lane);
};

}  // namespace hawser::agent
