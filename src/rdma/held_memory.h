#pragma once

// HeldMemory: registered memory whose owner is held. As long as it is held nothing else can be mapped there, so whoever
// registers a part of it has that part already.
//
// Thread rule: thread-safe. Memory: an entry for each that is held, and at most as many that are gone.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include <hawser/memory.h>
#include <hawser/rdma.h>

#include "base/mutex.h"
#include "rdma/parting_regions.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

/// Registered memory. Its owner goes only once nobody touches it.
struct MemoryCore {
  MemoryCore() = default;
  MemoryCore(const MemoryCore&) = delete;
  MemoryCore& operator=(const MemoryCore&) = delete;
  ~MemoryCore();

  std::span<std::byte> bytes;
  bool writable = true;
  Device device;
  std::uint64_t engine = 0;              ///< Whose agent knows `region`.
  std::weak_ptr<PartingRegions> keeper;  ///< For what cannot end at once.
  pid_t opener = 0;                      ///< A fork of it leaves all as it is.
  Region region;                         ///< None for no bytes.
  std::shared_ptr<const void> owner;
};

class HeldMemory {
 public:
  /// A part of memory that is held, which holds `owner`, too. Not valid: there is none.
  LocalMemory part_of(std::span<std::byte> bytes, const std::shared_ptr<const void>& owner, bool writable,
                      Device device) HAWSER_EXCLUDES(mutex_);
  void add(const std::shared_ptr<MemoryCore>& core) HAWSER_EXCLUDES(mutex_);
  /// Entries, also of those that are gone.
  std::size_t size() const HAWSER_EXCLUDES(mutex_);

 private:
  static constexpr std::size_t kLeast = 64;

  mutable base::Mutex mutex_;
  std::multimap<std::uintptr_t, std::weak_ptr<MemoryCore>> held_ HAWSER_GUARDED_BY(mutex_);  ///< By address.
  std::size_t most_ HAWSER_GUARDED_BY(mutex_) = kLeast;
};

}  // namespace rdma
HAWSER_NAMESPACE_END
