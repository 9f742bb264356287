#pragma once

// RegionNames: the names that regions of this agent have, each of them once.
//
// Thread rule: thread-safe.

#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "backend/region_table.h"
#include "base/mutex.h"

namespace hawser::agent {

class RegionNames {
 public:
  using Entries = std::span<const std::shared_ptr<backend::RegionEntry>>;

  /// Takes the names of those that have one and are listed: all or none. kInvalid for one that is taken already or too
  /// long, and `wrong` tells which entry has it. `call` is what the error names.
  Status take(std::string_view call, Entries entries, std::size_t* wrong);
  /// Those that have none, and the unlisted, are left out.
  void give_back(Entries entries);
  void give_back(const std::string& name);

 private:
  void drop_listed(Entries entries) HAWSER_REQUIRES(mutex_);
  void drop(const std::string& name) HAWSER_REQUIRES(mutex_) {
    if (!name.empty()) names_.erase(name);
  }

  base::Mutex mutex_;
  std::set<std::string, std::less<>> names_ HAWSER_GUARDED_BY(mutex_);
};

}  // namespace hawser::agent
