#pragma once

// ResultJudge: what operations give when they end well: collectives the right bytes, receives whole letters in order,
// agreements the same answer to all, which is the AND of the votes.
//
// Thread rule: one thread. Lifetime: the run's.

#include "worldsim/judge_uses.h"

namespace hawser::worldsim {

class ResultJudge {
 public:
  ResultJudge(const JudgeUses& uses, Realms& realms) : uses_(uses), realms_(realms) {}

  /// A collective, or a receive, has ended so.
  void check_collective(const Deed& deed, const Status& status) const;
  void check_received(const Deed& deed, const Status& status) const;
  /// An agreement ended well.
  void on_agreed(Deed& deed, bool flag) const;
  /// At the end, of a collective that did not fit: each rank sends something or waits for something, unless there are
  /// no elements, so somebody notices.
  void check_misfit(const Deed& deed) const;

 private:
  void check_barrier(const Deed& deed) const;
  void check_vote(const Realm& realm, std::size_t agreement, bool flag, const Deed& deed) const;

  const JudgeUses uses_;
  Realms& realms_;
};

}  // namespace hawser::worldsim
