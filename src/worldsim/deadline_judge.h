#pragma once

// DeadlineJudge: nothing outlives its deadline; once a rank has died or a collective has ended badly, all others of the
// world end soon.
//
// Thread rule: one thread. Lifetime: the run's.

#include "worldsim/judge_uses.h"

namespace hawser::worldsim {

class DeadlineJudge {
 public:
  explicit DeadlineJudge(const JudgeUses& uses) : uses_(uses) {}

  /// What an actor has under way may be late.
  void observe(const Actor& actor) const;
  /// Whether this recovery, which has not come, may still come. It must, soon after a rank has failed.
  bool may_recover(const Actor& actor, const Deed& deed) const;

 private:
  void check_late(const Actor& actor, const Deed& deed) const;
  void check_doomed(const Actor& actor, const Deed& deed) const;

  const JudgeUses uses_;
};

}  // namespace hawser::worldsim
