#pragma once

// PairSet: the queue pairs of one path, by number, and which of them takes a chunk.
//
// Thread rule: confined to the port's lane. Lifetime: owned by its path.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/verbs/memory/regions.h"
#include "backend/verbs/path/bindings.h"
#include "backend/verbs/path/path_pair.h"

namespace hawser::backend::verbs {

class PairSet {
 public:
  using All = std::vector<std::unique_ptr<PathPair>>;

  void add(std::unique_ptr<PathPair> pair) { pairs_.push_back(std::move(pair)); }
  void replace(std::size_t number, std::unique_ptr<PathPair> pair) { pairs_[number] = std::move(pair); }
  std::size_t size() const { return pairs_.size(); }
  bool empty() const { return pairs_.empty(); }
  PathPair& operator[](std::size_t number) { return *pairs_[number]; }
  const PathPair& operator[](std::size_t number) const { return *pairs_[number]; }
  All::const_iterator begin() const { return pairs_.begin(); }
  All::const_iterator end() const { return pairs_.end(); }
  /// The first, while it is ready; or null.
  PathPair* ready_first() const { return pairs_.empty() || !pairs_[0]->is_ready() ? nullptr : pairs_[0].get(); }

  /// The one of that lane whose queue pair has the device's number; or null.
  PathPair* find(std::uint32_t lane, std::uint32_t device_number) const {
    for (const auto& pair : pairs_) {
      if (pair->lane() == lane && pair->qp().number() == device_number) return pair.get();
    }
    return nullptr;
  }
  /// The ready one of the port that is nearest to the chunk's memory here, then the one that would have it done first:
  /// by its rail's speed and what is under way on it. Not one of those `passed` (bits), which it joins; or null.
  PathPair* best(const Chunk& chunk, const VerbsBinding& binding, std::uint64_t* passed) const;
  /// Whether one of them, ready or not, leads to a port with a key, or there are none yet.
  bool may_reach(const VerbsBinding& binding) const;
  /// Whether a ready one leads to a port with a key.
  bool reaches(const VerbsBinding& binding) const;

  /// Marks chunks of the transfer. True: one is on a queue pair.
  bool cancel(std::uint64_t transfer) const;
  /// Nothing is posted, or waits for a fence.
  bool is_idle() const;
  /// How much waits for a fence.
  std::size_t lost() const;
  bool is_stuck(Instant now) const {
    return std::ranges::any_of(pairs_, [now](const auto& pair) { return pair->lost().is_stuck(now); });
  }
  /// Each breaks as soon as it is ready.
  bool all_worn() const {
    return std::ranges::all_of(pairs_, [](const auto& pair) { return pair->is_worn(); });
  }
  /// Whether something that was posted may use them.
  bool may_use(const KeysInUse& keys) const;
  Instant next_deadline() const;

 private:
  All pairs_;
};

}  // namespace hawser::backend::verbs
