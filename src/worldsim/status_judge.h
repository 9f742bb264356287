#pragma once

// StatusJudge: every operation ends with a status for which there is a reason: a deadline that has come, a
// cancellation, a rank that died and is named.
//
// Thread rule: one thread. Lifetime: the run's.

#include "worldsim/judge_uses.h"

namespace hawser::worldsim {

class StatusJudge {
 public:
  explicit StatusJudge(const JudgeUses& uses) : uses_(uses) {}

  /// The deed has ended so.
  void check(const Deed& deed, const Status& status) const;

 private:
  void check_disconnected(const Deed& deed, const Status& status) const;
  void check_timed_out(const Deed& deed, const Status& status) const;
  void check_cancelled(const Deed& deed, const Status& status) const;
  void check_invalid(const Deed& deed, const Status& status) const;
  bool letter_waits(const Deed& receive) const;

  const JudgeUses uses_;
};

}  // namespace hawser::worldsim
