#pragma once

// MappedMemory: which regions of the other ranks a rank met in collectives, by what it called them with. So it can have
// their memory mapped before the next such call asks for it.
//
// Thread rule: under the lane's lock. Memory: at most kKnownMax calls are remembered; then it begins anew.

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/region.h"

namespace hawser::runtime {

/// A region of another rank.
struct RankRegion {
  std::uint32_t rank = 0;
  agent::RegionId id;
  std::uint64_t size = 0;  ///< Bytes.
  friend bool operator==(const RankRegion&, const RankRegion&) = default;
};

class MappedMemory {
 public:
  static constexpr std::size_t kKnownMax = 256;

  struct Known {
    std::uint64_t number = 0;  ///< Of the regions of all ranks, this one's too: the same at all of them.
    std::vector<RankRegion> regions;
  };
  /// `call` stands for the operation and this rank's own regions. Null: it met no others with it yet.
  const Known* find(std::uint64_t call) const {
    const auto found = known_.find(call);
    return found == known_.end() ? nullptr : &found->second;
  }
  void learn(std::uint64_t call, Known known) {
    if (known_.size() >= kKnownMax && !known_.contains(call)) known_.clear();
    known_.insert_or_assign(call, std::move(known));
  }

 private:
  std::unordered_map<std::uint64_t, Known> known_;
};

}  // namespace hawser::runtime
