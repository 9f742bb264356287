#include "worldsim/status_judge.h"

#include "wire/runtime.h"

namespace hawser::worldsim {

void StatusJudge::check_disconnected(const Deed& deed, const Status& status) const {
  if (uses_.fates.accuses() || uses_.fates.is_gone(deed.realm->actors[deed.rank]))
    return;  // It may be told that it has failed.
  const bool any = uses_.fates.has_gone(*deed.realm) || uses_.fates.has_left(*deed.realm);
  if (!any) return wrong_end(uses_, deed, status, "but nobody failed or left");
  switch (deed.kind) {
    case DeedKind::kCollective:
      if (!uses_.fates.has_lost(deed, status.peer())) wrong_end(uses_, deed, status, "and names none that failed");
      return;
    case DeedKind::kSend:
      if (!uses_.fates.is_lost(deed, deed.letter.to)) wrong_end(uses_, deed, status, "but its target lives");
      return;
    case DeedKind::kReceive:
      if (deed.source && !uses_.fates.is_lost(deed, *deed.source))
        wrong_end(uses_, deed, status, "but its source lives");
      return;
    case DeedKind::kCall:
      if (!uses_.fates.is_lost(deed, deed.remote->to))
        wrong_end(uses_, deed, status, "but the rank that it calls lives");
      return;
    default:
      if (uses_.rules.is_automatic && uses_.fates.has_gone(*deed.realm)) return;  // The others recover.
      return wrong_end(uses_, deed, status, "but nobody may hold this rank for failed");
  }
}

bool StatusJudge::letter_waits(const Deed& receive) const {
  const Part& part = receive.realm->parts[receive.rank];
  if (uses_.fates.accuses() || uses_.universe.world.now() < uses_.times.delayed_until() ||
      may_be_landing(uses_, receive))
    return false;
  for (const auto& actor : uses_.actors) {
    if (uses_.fates.is_gone(actor->number)) continue;
    for (const auto& deed : actor->deeds) {
      const Letter& letter = deed->letter;
      const bool is_sent = deed->is_good && is_letter_for(*deed, receive) && deed->ended + kOnItsWay < receive.due;
      if (is_sent && letter.size <= wire::kRuntimeBodyMax && !part.book.has(letter)) return true;
    }
  }
  return false;
}

void StatusJudge::check_timed_out(const Deed& deed, const Status& status) const {
  // Where the whole world broke, not all of its ranks may have made the group.
  const Realm& whole = deed.realm->is_group ? *deed.realm->parent : *deed.realm;
  const bool may_lack_ranks = deed.realm->is_group && whole.doomed;
  const bool is_others =
      deed.kind == DeedKind::kCollective && (deed.realm->disturbances.contains(Code::kTimedOut) || may_lack_ranks);
  if (uses_.universe.world.now() < deed.due && !is_others) return wrong_end(uses_, deed, status, "before its deadline");
  const bool is_broken = !deed.realm->disturbances.empty() || may_lack_ranks;
  const bool is_calm = uses_.fates.all_live(*deed.realm) && !uses_.fates.accuses() && !is_broken;
  const bool may_be_late = deed.kind != DeedKind::kCollective || !is_calm;
  if (!may_be_late) return wrong_end(uses_, deed, status, "though nothing held it up");
  if (deed.kind == DeedKind::kReceive && letter_waits(deed))
    wrong_end(uses_, deed, status, "though a letter waits for it");
}

void StatusJudge::check_cancelled(const Deed& deed, const Status& status) const {
  const bool is_ours = deed.is_cancelled || part_of(deed).is_left;
  const bool is_stopped = deed.kind == DeedKind::kReceive && deed.capacity == 0;
  const bool is_others = deed.realm->disturbances.contains(Code::kCancelled) &&
                         (deed.kind == DeedKind::kCollective || deed.kind == DeedKind::kReceive);
  const bool has_closed = deed.kind == DeedKind::kCall && deed.realm->parts[deed.remote->to].is_left;
  if (!is_ours && !is_stopped && !is_others && !has_closed) wrong_end(uses_, deed, status, "but nobody cancelled it");
}

void StatusJudge::check_invalid(const Deed& deed, const Status& status) const {
  const bool is_misfit = deed.kind == DeedKind::kCollective && deed.realm->disturbances.contains(Code::kInvalid);
  const bool is_short = deed.kind == DeedKind::kReceive && deed.capacity < wire::kRuntimeBodyMax;
  if (!is_misfit && !is_short) wrong_end(uses_, deed, status, "but nothing about it is invalid");
}

void StatusJudge::check(const Deed& deed, const Status& status) const {
  switch (status.code()) {
    case Code::kOk:
      return;
    case Code::kTimedOut:
      return check_timed_out(deed, status);
    case Code::kDisconnected:
      return check_disconnected(deed, status);
    case Code::kCancelled:
      return check_cancelled(deed, status);
    case Code::kInvalid:
      return check_invalid(deed, status);
    case Code::kNotFound: {
      const bool may_be = deed.kind == DeedKind::kCall && (deed.handler == "nobody" || deed.realm->parent != nullptr);
      if (!may_be) wrong_end(uses_, deed, status, "but it is there");
      return;
    }
    case Code::kBusy: {
      const bool agrees = deed.kind == DeedKind::kAgree || deed.kind == DeedKind::kShrink;
      if (!uses_.rules.is_automatic || !agrees) wrong_end(uses_, deed, status, "but nothing is in its way");
      return;
    }
    case Code::kDenied:
      if (deed.kind == DeedKind::kShrink && may_refuse(uses_, *deed.realm)) return;
      if (deed.kind != DeedKind::kCall || deed.handler != "refuse")
        wrong_end(uses_, deed, status, "but nobody denied it");
      return;
    default:
      return wrong_end(uses_, deed, status, "which is none of the ends that it may have");
  }
}

}  // namespace hawser::worldsim
