#pragma once

// JudgeUses: what the members of WorldJudge have in common.
//
// Thread rule: one thread. Lifetime: WorldJudge owns what it refers to.

#include "worldsim/fates.h"
#include "worldsim/trouble_times.h"

namespace hawser::worldsim {

/// So long a letter may be on its way.
inline constexpr Duration kOnItsWay = std::chrono::milliseconds(100);

/// How the worlds of a run go on after failures.
struct WorldRules {
  bool has_majority = false;  ///< Only more than half of a realm's ranks that are not proven dead may go on.
  bool is_automatic = false;  ///< Worlds recover by themselves.
};

struct JudgeUses {
  sim::Universe& universe;
  Verdict& verdict;
  Fates& fates;
  const Actors& actors;
  const TroubleTimes& times;
  const WorldRules& rules;
};

/// The deed ended with a status for which there is no reason.
void wrong_end(const JudgeUses& uses, const Deed& deed, const Status& status, const std::string& why);
/// Whether a shrink of this realm may find that it has no majority.
bool may_refuse(const JudgeUses& uses, const Realm& realm);
/// A large letter may be on its way to this receive, unless its sender had stopped it before.
bool may_be_landing(const JudgeUses& uses, const Deed& receive);
bool is_letter_for(const Deed& send, const Deed& receive);

}  // namespace hawser::worldsim
