#pragma once

// CallJudge: remote calls give the right answers, and run at most once, not after their deadline, not after they were
// taken back.
//
// Thread rule: one thread. Lifetime: the run's.

#include <cstdint>
#include <deque>

#include "worldsim/judge_uses.h"

namespace hawser::worldsim {

class CallJudge {
 public:
  explicit CallJudge(const JudgeUses& uses) : uses_(uses) {}

  Remote& make(std::uint64_t uid, Realm& realm, std::uint32_t from, std::uint32_t to);
  /// A handler of this rank begins with a call.
  void on_run(const Realm& realm, std::uint32_t rank, std::uint64_t uid);
  /// The call has ended so.
  void check_answer(const Deed& deed, const Status& status) const;

 private:
  const JudgeUses uses_;
  std::deque<Remote> remotes_;
};

}  // namespace hawser::worldsim
