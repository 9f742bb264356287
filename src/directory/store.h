#pragma once

// Store: keys and values in memory, with versions, leases, and a memory of what changed since when. It is the
// in-process directory itself and the file directory's picture of its folder.
//
// Watchers cost it nothing: each keeps the revision up to which it was told, and asks for what came after.
//
// Thread rule: Store is confined; SharedStore adds the lock. Lifetime: answers are copies.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/directory.h>
#include <hawser/time.h>

#include "base/mutex.h"

namespace hawser::directory {

/// Keys at once; a put of one more answers kBusy.
inline constexpr std::size_t kKeysMax = std::size_t{1} << 18;
/// Erased keys that are remembered for watchers; one who missed more is told everything again.
inline constexpr std::size_t kTombstonesMax = 4096;

class Store {
 public:
  struct Record {
    std::string value;
    std::uint64_t version = 0;
    std::uint64_t revision = 0;       ///< When it changed last.
    Instant expiry = Instant::max();  ///< On the clock that `expire` is given.
  };
  struct Changes {
    bool lost = false;  ///< Too old: list everything and go on from `through`.
    std::vector<DirectoryEntry> changed;
    std::vector<DirectoryEntry> erased;  ///< Keys only.
    std::uint64_t through = 0;           ///< Where to go on.
  };

  /// Grows with each change.
  std::uint64_t revision() const { return revision_; }
  std::size_t size() const { return records_.size(); }
  const Record* find(std::string_view key) const;
  std::vector<DirectoryEntry> list(std::string_view prefix) const;
  /// At most `limit` changes after revision `since`, oldest first, each key with its latest state.
  Changes changes(std::string_view prefix, std::uint64_t since, std::size_t limit) const;

  /// `version` is what readers will see. False when there is no room.
  bool put(std::string_view key, std::string_view value, std::uint64_t version, Instant expiry);
  bool erase(std::string_view key);
  /// Erases what has expired at `now`; true when there was any.
  bool expire(Instant now);

 private:
  void bury(std::string_view key);

  std::map<std::string, Record, std::less<>> records_;
  std::map<std::uint64_t, std::string> by_revision_;          ///< The records' keys.
  std::map<std::string, std::uint64_t, std::less<>> erased_;  ///< Tombstones, at most kTombstonesMax.
  std::map<std::uint64_t, std::string> erased_by_revision_;
  std::set<std::pair<Instant, std::string>> expiries_;  ///< For records with a lease.
  std::uint64_t revision_ = 0;
  std::uint64_t forgotten_ = 0;  ///< Newest tombstone that was dropped.
};

struct SharedStore {
  mutable base::Mutex mutex;
  Store store HAWSER_GUARDED_BY(mutex);
};

/// A put's answer before anything is changed: good, or kBusy because of create_only or if_version. `version` is
/// 0 when the key is not there.
Status check_put(std::string_view key, const PutOptions& options, std::uint64_t version);
/// An erase's answer for a key that is there: good, or kBusy because of if_version.
Status check_erase(std::string_view key, const EraseOptions& options, std::uint64_t version);

}  // namespace hawser::directory
