#pragma once

// MrCache: the registrations of one device by address, so that memory is registered once and found in nanoseconds.
//
// Two ways in: `add` lists a registration that its maker keeps (a region: never shared, gone when its owner lets go),
// `acquire` answers with one that covers the range, made now if there is none. Whoever holds what acquire gave pins it:
// it may leave the look-ups, but its keys stay good. Idle ones are kept for the next user, up to the limits, and the
// one that was used longest ago goes first. What is pinned is never evicted, nor refused: that bound is its owner's.
//
// An entry carries the generation of its memory (a CUDA buffer id, a caller's number): one of another generation is
// stale, and is dropped instead of hit. A failure is remembered for a while, for its range and this device only.
//
// Each device has a cache of its own; what fails on one is nothing to the others.
//
// Thread rule: thread-safe; registers and deregisters outside of its lock. Data paths look up through a MrReader.
// Lifetime: outlives its readers; what it gave out outlives it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "backend/verbs/memory/mr_cache_table.h"
#include "backend/verbs/memory/registration.h"
#include "base/intrusive_list.h"
#include "base/mutex.h"

namespace hawser::backend::verbs {

/// A range that somebody wants to reach.
struct Wanted {
  std::uintptr_t address = 0;
  std::size_t size = 0;
  Access access;
  std::uint64_t generation = 0;  ///< Of the memory, where the caller knows it; 0: ask the source.
  friend bool operator==(const Wanted&, const Wanted&) = default;
};

/// Where registrations come from: pages of the host, a GPU's memory, an allocator's segments.
class MemorySource {
 public:
  struct Made {
    std::shared_ptr<Registration> registration;
    std::uint64_t generation = 0;
  };
  virtual ~MemorySource() = default;
  /// Registrations in order of address that cover the range together (several: it lies in several allocations).
  virtual Result<std::vector<Made>> make(const Wanted& wanted) = 0;
  /// Of the memory that is at `address` now; 0 where nobody can tell.
  virtual std::uint64_t generation(std::uintptr_t address) { return static_cast<void>(address), 0; }
};

/// Pages of this process.
class HostSource final : public MemorySource {
 public:
  explicit HostSource(std::shared_ptr<Domain> domain) : domain_(std::move(domain)) {}
  Result<std::vector<Made>> make(const Wanted& wanted) override;

 private:
  const std::shared_ptr<Domain> domain_;
};

struct MrCacheLimits {
  std::uint64_t bytes_max = std::uint64_t{64} << 30;  ///< Of all entries; above it idle ones go.
  std::size_t count_max = 4096;                       ///< Of entries, likewise.
  Duration failure_ttl = std::chrono::seconds(1);     ///< How long a failure is repeated without trying again.
  std::size_t failures_max = 64;                      ///< Remembered at once; the oldest is forgotten.
};

/// What happened so far.
struct MrCacheCounters {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t stale = 0;      ///< Entries found to be of another generation.
  std::uint64_t evictions = 0;  ///< Idle entries dropped for the limits or for locked memory.
  std::uint64_t failures = 0;   ///< Registrations that failed.
  std::uint64_t repeated = 0;   ///< Answered with a remembered failure.
  std::uint64_t count = 0;      ///< Entries now.
  std::uint64_t bytes = 0;      ///< Theirs.
};

class MrCache {
 public:
  using Registrations = std::vector<std::shared_ptr<Registration>>;

  /// `source` and `clock` outlive it.
  MrCache(MemorySource& source, const MrCacheLimits& limits = {}, const Clock& clock = Clock::steady())
      : source_(source), limits_(limits), clock_(clock) {}
  MrCache(const MrCache&) = delete;
  MrCache& operator=(const MrCache&) = delete;
  ~MrCache() = default;

  /// Lists what the caller keeps; it serves look-ups and those who acquire for this process's own use until `remove`.
  void add(std::shared_ptr<Registration> registration, std::uint64_t generation = 0) HAWSER_EXCLUDES(mutex_);
  /// Takes it out of the look-ups. It is deregistered when the last holder lets go. False: it was not listed.
  /// `found_before`: the version until which who looked for memory of others may have found this one, as they have
  /// bytes in common; 0: nobody may.
  bool remove(const Registration& registration, std::uint64_t* found_before = nullptr) HAWSER_EXCLUDES(mutex_);

  /// Registrations that cover the range, in order of address: one, unless it lies in several allocations. Holding them
  /// pins them. Peers' rights are exactly those asked for. Errors are the source's, repeated until failure_ttl is over.
  Result<Registrations> acquire(const Wanted& wanted) HAWSER_EXCLUDES(mutex_);
  /// The memory is gone or has changed: nothing that touches the range is found any more. Returns how many entries.
  std::size_t invalidate(std::uintptr_t address, std::size_t size) HAWSER_EXCLUDES(mutex_);
  /// Drops all idle entries, as when locked memory runs out.
  std::size_t evict_idle() HAWSER_EXCLUDES(mutex_);

  MrCacheCounters counters() const HAWSER_EXCLUDES(mutex_);

 private:
  friend class MrReader;

  struct Entry;
  using Entries = std::multimap<std::uintptr_t, Entry>;
  struct Entry {
    std::shared_ptr<Registration> registration;
    std::uint64_t generation = 0;
    bool owned = false;  ///< Its maker's alone (`add`): not evicted, not given to who asks for peers' rights.
    Entries::iterator self;
    base::ListHook used;  ///< In lru_, unless owned.
  };
  struct Failure {
    Wanted wanted;
    Status status;
    Instant until;
  };
  /// Entries that serve one kind of access.
  struct View {
    std::uint64_t version = 0;
    MrTable table;
    std::vector<Entry*> entries;  ///< By MrSpan::index.
  };
  struct Piece {
    std::shared_ptr<Registration> registration;
    std::uint64_t generation = 0;
    bool owned = false;
  };
  using Pieces = std::vector<Piece>;
  /// Ended after the lock is released: declare it before the lock.
  using Dying = Registrations;

  std::shared_ptr<const MrTable> table(std::uint64_t* version) const HAWSER_EXCLUDES(mutex_);
  /// What a table's find tells, from the entries themselves; an empty span: nothing covers it.
  MrSpan find_now(std::uintptr_t address, std::size_t size, std::uint64_t* version) HAWSER_EXCLUDES(mutex_);
  Result<Registrations> make_and_keep(const Wanted& wanted) HAWSER_EXCLUDES(mutex_);
  Result<std::vector<MemorySource::Made>> make(const Wanted& wanted) HAWSER_EXCLUDES(mutex_);
  /// Whether each piece is of the memory that is there now; those that are not are dropped.
  bool all_fresh(const Wanted& wanted, const Pieces& pieces) HAWSER_EXCLUDES(mutex_);

  /// Pieces that cover the range; empty when some of it is not covered.
  Pieces look_up(const Wanted& wanted) HAWSER_REQUIRES(mutex_);
  /// The entry that serves `access` at `address` and covers `size` bytes, else the one that reaches furthest; or null.
  Entry* covering(std::uintptr_t address, std::size_t size, const Access& access) HAWSER_REQUIRES(mutex_);
  Entry* nearby(std::uintptr_t address, std::size_t size, const Access& access, bool* certain) HAWSER_REQUIRES(mutex_);
  const View& view_for(const Access& access) HAWSER_REQUIRES(mutex_);
  void insert(const std::shared_ptr<Registration>& registration, std::uint64_t generation, bool owned)
      HAWSER_REQUIRES(mutex_);
  void drop(Entry& entry, Dying* dying) HAWSER_REQUIRES(mutex_);
  void drop_covered_by(const Registration& registration, const Access& access, Dying* dying) HAWSER_REQUIRES(mutex_);
  std::size_t evict(std::uint64_t bytes_max, std::size_t count_max, std::size_t steps, Dying* dying)
      HAWSER_REQUIRES(mutex_);
  Entry* entry_of(const Registration& registration) HAWSER_REQUIRES(mutex_);
  /// Whether others may have bytes in common with it.
  bool may_overlap(const Entry& entry) const HAWSER_REQUIRES(mutex_);
  void changed() HAWSER_REQUIRES(mutex_);
  /// Good: none is remembered.
  Status known_failure(const Wanted& wanted) HAWSER_REQUIRES(mutex_);
  void remember(const Wanted& wanted, const Status& status) HAWSER_REQUIRES(mutex_);

  MemorySource& source_;
  const MrCacheLimits limits_;
  const Clock& clock_;
  std::atomic<std::uint64_t> version_{1};

  mutable base::Mutex mutex_;
  Entries entries_ HAWSER_GUARDED_BY(mutex_);
  std::size_t longest_ HAWSER_GUARDED_BY(mutex_) = 0;  ///< Of all entries, or more.
  base::IntrusiveList<Entry, &Entry::used> lru_ HAWSER_GUARDED_BY(mutex_);
  std::map<int, View> views_ HAWSER_GUARDED_BY(mutex_);
  mutable std::shared_ptr<const MrTable> table_ HAWSER_GUARDED_BY(mutex_);
  mutable std::uint64_t table_version_ HAWSER_GUARDED_BY(mutex_) = 0;
  std::list<Failure> failures_ HAWSER_GUARDED_BY(mutex_);
  MrCacheCounters counters_ HAWSER_GUARDED_BY(mutex_);
};

/// A data path's own view of a cache: look-ups without a lock, and without a search when the memory is the same as last
/// time. Only the first few after each change go to the cache itself: a snapshot is worth making when it is used.
///
/// It holds keys, not registrations, so that it keeps nothing alive: who posts holds what it posts from (its region),
/// and lets go only when the work request has ended. Where several are registered for the same memory, it may find
/// another's: who ends that one asks `found_before`.
///
/// Thread rule: one thread at a time. Lifetime: within the cache's.
class MrReader {
 public:
  explicit MrReader(MrCache& cache) : cache_(cache) {}

  /// Of what is found from now on, or later.
  std::uint64_t version() const { return cache_.version_.load(std::memory_order_acquire); }

  /// Keys of the bytes at `address`: for all `size` of them, or for as many as one registration covers from there on
  /// (then ask again for the rest). No keys: nothing is registered there. `size` is not 0.
  Keys find(std::uintptr_t address, std::size_t size) {
    const bool same = version_ == cache_.version_.load(std::memory_order_acquire);
    const std::uintptr_t offset = address - last_.begin;
    const std::uintptr_t length = last_.end - last_.begin;
    if (same && offset < length && size <= length - offset) [[likely]] {
      return {.iova = last_.iova + offset,
              .size = size,
              .lkey = last_.lkey,
              .rkey = last_.rkey,
              .gpu = last_.gpu,
              .node = last_.node};
    }
    return search(address, size);
  }

 private:
  Keys search(std::uintptr_t address, std::size_t size);

  MrCache& cache_;
  std::uint64_t version_ = 0;  ///< Of last_, and of table_ if there is one.
  MrSpan last_;
  int searches_ = 0;  ///< In the cache itself, of this version.
  std::shared_ptr<const MrTable> table_;
};

}  // namespace hawser::backend::verbs
