#pragma once

// Refusals: which regions a path cannot carry, and why; the planner then takes another path.
//
// A path refuses a remote region as a whole when it cannot bind it. When it refuses a chunk, the memory on this side
// may be what it cannot reach (memory that is not registered with the NIC), so only this local memory together with
// this remote region is refused: other memory goes on by the path.
//
// Thread rule: under the lane's lock. Lifetime: its path's.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <hawser/status.h>

namespace hawser::agent {

class Refusals {
 public:
  /// A region's index and generation.
  using Id = std::pair<std::uint32_t, std::uint32_t>;

  /// The oldest is forgotten above so many: it costs one more refused chunk.
  static constexpr std::size_t kMax = 256;

  struct Refusal {
    Id remote;
    std::vector<Id> locals;  ///< What of this side took part; empty: the remote region is refused for all memory.
    Status why;
  };

  void add(Id remote, std::vector<Id> locals, Status why) {
    const bool known =
        std::ranges::any_of(all_, [&](const Refusal& each) { return each.remote == remote && each.locals == locals; });
    if (known) return;
    if (all_.size() == kMax) all_.erase(all_.begin());
    all_.push_back({.remote = remote, .locals = std::move(locals), .why = std::move(why)});
  }

  /// False: there was none.
  bool forget_all() { return !std::exchange(all_, {}).empty(); }

  /// The first that is about a plan, or null: `joins` says whether the plan moves bytes between the refusal's regions,
  /// all of them in one chunk. A plan that has both and does not join them goes on by the path.
  template <typename Joins>
  const Refusal* find(Joins&& joins) const {
    for (const Refusal& each : all_) {
      if (joins(each)) return &each;
    }
    return nullptr;
  }

 private:
  std::vector<Refusal> all_;
};

}  // namespace hawser::agent
