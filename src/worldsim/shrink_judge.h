#pragma once

// ShrinkJudge: a shrunk world is the same to all its ranks, in the old order, with all that live; and what it says of
// the last good collective is true.
//
// Thread rule: one thread. Lifetime: the run's.

#include <cstdint>
#include <vector>

#include "worldsim/judge_uses.h"

namespace hawser::worldsim {

/// What a rank got.
struct NewWorld {
  std::vector<std::uint32_t> old_ranks;  ///< By rank.
  std::vector<std::uint32_t> failed;     ///< Ranks of it that are held for failed.
  std::uint64_t last_good = 0;

  static NewWorld of(const World& world);
};

class ShrinkJudge {
 public:
  explicit ShrinkJudge(const JudgeUses& uses) : uses_(uses) {}

  /// The shrink gave this world. Returns the actors of its ranks.
  std::vector<std::size_t> check(const Deed& deed, const NewWorld& world) const;

 private:
  void check_same(const Deed& deed, const Shrunk& mine) const;
  void check_alone(const Deed& deed, const Shrunk& mine) const;
  void check_parted(const Deed& deed, const std::vector<std::size_t>& actors) const;
  void check_majority(const Deed& deed, std::size_t ranks) const;
  void check_last_good(const Deed& deed, std::uint64_t last_good) const;

  const JudgeUses uses_;
};

}  // namespace hawser::worldsim
