#pragma once

// Regions: the agent's regions as registered with each of its NICs.
//
// Thread rule: thread-safe. Lifetime: shared by the backend and its port; holds the registrations.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/region_table.h"
#include "backend/verbs/nic.h"
#include "base/mutex.h"

namespace hawser::backend::verbs {

class Regions {
 public:
  Regions(std::vector<std::shared_ptr<Nic>> nics, bool relaxed_ordering)
      : nics_(std::move(nics)), relaxed_ordering_(relaxed_ordering) {}

  /// The card's bytes; empty for memory that no RDMA device reaches (files). Errors: the registration's.
  Result<std::string> add(const RegionEntry& region) HAWSER_EXCLUDES(mutex_);
  /// Deregisters it: when this returns, no device touches the memory for peers any more.
  void remove(std::uint32_t index, std::uint32_t generation) HAWSER_EXCLUDES(mutex_);
  std::size_t count() const HAWSER_EXCLUDES(mutex_);

 private:
  using Key = std::pair<std::uint32_t, std::uint32_t>;
  using Registered = std::vector<std::shared_ptr<Registration>>;

  const std::vector<std::shared_ptr<Nic>> nics_;
  const bool relaxed_ordering_;
  mutable base::Mutex mutex_;
  std::map<Key, Registered> regions_ HAWSER_GUARDED_BY(mutex_);
};

}  // namespace hawser::backend::verbs
