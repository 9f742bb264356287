#pragma once

// SegmentTable: an allocator's segments of GPU memory, each under one key, so that every tensor in one has it at once.
//
// Allocators map many pieces of memory side by side and hand out parts of them. The provider tells which segments there
// are; each is registered by dmabufs as it grows, its new tail only, and the pieces are bound under one indirect key
// where the device has such. What a key really covers is what is found by it: not what the provider says.
//
// A look-up that misses asks the provider once and looks again. Then it is the caller's turn (a dmabuf of the
// allocation). A segment that has grown gets a new key; who holds the old one goes on with it. One that was mapped
// anew, or has shrunk, is registered anew. A segment that cannot be registered is left out for a while, and troubles no
// other.
//
// Thread rule: thread-safe. Whoever calls must not hold what the provider takes (as Python's lock): two callers wait
// for one provider's call. Lifetime: holds its Domain; driver and keys outlive it. What it gave out outlives it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "backend/address_space.h"
#include "backend/verbs/gpu/gpu_driver.h"
#include "backend/verbs/gpu/registration_gpu.h"
#include "backend/verbs/memory/mr_cache.h"
#include "backend/verbs/memory/registration.h"
#include "base/mutex.h"

namespace hawser::backend::verbs {

struct Segment {
  AddressRange range;            ///< Grows at its end.
  std::uint64_t generation = 0;  ///< Another one when any of it was mapped anew; 0: the allocator cannot tell.
  friend bool operator==(const Segment&, const Segment&) = default;
};
using SegmentProvider = std::function<Result<std::vector<Segment>>()>;

/// Several registrations under one key, as mlx5 has it. Thread-safe.
class IndirectKeys {
 public:
  virtual ~IndirectKeys() = default;
  /// Most pieces that one key can have.
  virtual std::size_t pieces_max() const = 0;
  /// `pieces` follow each other without a gap. The key holds them.
  virtual Result<std::shared_ptr<Registration>> bind(const std::vector<std::shared_ptr<Registration>>& pieces,
                                                     const Access& access) = 0;
};

/// Generations of segments are told apart from buffer ids by this bit.
inline constexpr std::uint64_t kSegmentGeneration = std::uint64_t{1} << 63;

struct SegmentLimits {
  /// Of one piece: a work request's element is 32 bits long, and mappings are whole 2 MiB.
  std::uint64_t piece_bytes_max = (std::uint64_t{4} << 30) - (std::uint64_t{2} << 20);
  std::size_t segments_max = 65536;                ///< Beyond: the rest is left to dmabufs.
  Duration failure_ttl = std::chrono::seconds(1);  ///< How long a segment that failed is left alone.
};

/// What a table holds, for people and tests.
struct SegmentReport {
  std::size_t segments = 0;
  std::size_t pieces = 0;
  std::size_t without_key = 0;  ///< Segments of several pieces without one key over all of them.
  std::uint64_t syncs = 0;      ///< The provider was asked so many times.
  Status failure;               ///< The last one; good: none.
};

class SegmentTable {
 public:
  struct Found {
    std::shared_ptr<Registration> registration;  ///< Null: no key covers the range.
    std::uint64_t generation = 0;                ///< Of the memory: changes when it is mapped anew, not when it grows.
  };

  /// `keys` may be null: then only what lies in one piece is found.
  SegmentTable(std::shared_ptr<Domain> domain, GpuDriver& driver, SegmentProvider provider, IndirectKeys* keys,
               const Access& access, const SegmentLimits& limits = {}, const Clock& clock = Clock::steady())
      : domain_(std::move(domain)),
        driver_(driver),
        provider_(std::move(provider)),
        keys_(keys),
        access_(access),
        limits_(limits),
        clock_(clock) {}

  const Access& access() const { return access_; }
  /// What covers the range, after one sync if it must be. Nothing found is no error; the provider's failure is none
  /// either, but told in the report.
  Found find(std::uintptr_t address, std::size_t size) HAWSER_EXCLUDES(sync_mutex_, mutex_);
  /// Of what is registered at `address` now, without a sync; 0: nothing, or it was mapped anew.
  std::uint64_t generation(std::uintptr_t address) HAWSER_EXCLUDES(mutex_);
  /// Asks the provider and registers what is new.
  void sync() HAWSER_EXCLUDES(sync_mutex_, mutex_);
  SegmentReport report() const HAWSER_EXCLUDES(mutex_);

 private:
  struct Piece {
    std::shared_ptr<Registration> registration;
    std::uint64_t buffer_id = 0;  ///< Of its first byte.
  };
  /// One segment. Never changed once others can see it.
  struct Entry {
    Segment segment;
    std::vector<Piece> pieces;          ///< Without a gap, from the segment's begin.
    std::shared_ptr<Registration> key;  ///< Over all pieces, or over the first ones if that is all there is; or null.
    std::uint64_t generation = 0;
    Status failure;
    Instant retry_at;
    std::uintptr_t covered() const { return pieces.empty() ? segment.range.begin : pieces.back().registration->end(); }
  };
  using Entries = std::map<std::uintptr_t, std::shared_ptr<const Entry>>;

  std::shared_ptr<const Entries> entries() const HAWSER_EXCLUDES(mutex_);
  Found look_up(std::uintptr_t address, std::size_t size) HAWSER_EXCLUDES(mutex_);
  bool is_fresh(const Piece& piece);
  void sync_locked() HAWSER_REQUIRES(sync_mutex_) HAWSER_EXCLUDES(mutex_);
  std::vector<Segment> asked(Status* failure) HAWSER_REQUIRES(sync_mutex_);
  std::shared_ptr<const Entry> updated(const Segment& segment, const Entry* old) HAWSER_REQUIRES(sync_mutex_);
  Entry continued(const Segment& segment, const Entry* old) HAWSER_REQUIRES(sync_mutex_);
  Status register_tail(Entry* entry);
  /// Many small steps of growth make more pieces than a key can have: registers it all anew, in few.
  void compact(Entry* entry);
  Status bind(Entry* entry);

  const std::shared_ptr<Domain> domain_;
  GpuDriver& driver_;
  const SegmentProvider provider_;
  IndirectKeys* const keys_;
  const Access access_;
  const SegmentLimits limits_;
  const Clock& clock_;

  base::Mutex sync_mutex_;  ///< Taken before mutex_.
  std::uint64_t next_generation_ HAWSER_GUARDED_BY(sync_mutex_) = 0;
  mutable base::Mutex mutex_;
  std::shared_ptr<const Entries> entries_ HAWSER_GUARDED_BY(mutex_) = std::make_shared<const Entries>();
  SegmentReport report_ HAWSER_GUARDED_BY(mutex_);
};

/// Registers from a segment table where it can, else as GpuMemory does.
class SegmentedMemory final : public MemorySource {
 public:
  SegmentedMemory(SegmentTable& segments, GpuMemory& otherwise) : segments_(segments), otherwise_(otherwise) {}
  Result<std::vector<Made>> make(const Wanted& wanted) override;
  std::uint64_t generation(std::uintptr_t address) override;

 private:
  SegmentTable& segments_;
  GpuMemory& otherwise_;
};

}  // namespace hawser::backend::verbs
