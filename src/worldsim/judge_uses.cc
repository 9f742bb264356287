#include "worldsim/judge_uses.h"

#include <fmt/format.h>

#include "wire/runtime.h"

namespace hawser::worldsim {

void wrong_end(const JudgeUses& uses, const Deed& deed, const Status& status, const std::string& why) {
  uses.verdict.fail(fmt::format("{} ended as '{}', {}", describe(deed), status.to_string(), why));
}

bool may_refuse(const JudgeUses& uses, const Realm& realm) {
  std::uint32_t missing = 0;  // A rank that is gone may have left before.
  for (std::uint32_t rank = 0; rank < realm.size(); ++rank) {
    missing += uses.fates.is_gone(realm.actors[rank]) || realm.parts[rank].is_left ? 1 : 0;
  }
  return uses.rules.has_majority && (uses.fates.accuses() || 2 * missing >= realm.size());
}

bool is_letter_for(const Deed& send, const Deed& receive) {
  return send.kind == DeedKind::kSend && send.realm == receive.realm && send.letter.to == receive.rank &&
         receive.source.value_or(send.rank) == send.rank && receive.tag.value_or(send.letter.tag) == send.letter.tag;
}

bool may_be_landing(const JudgeUses& uses, const Deed& receive) {
  const Part& part = receive.realm->parts[receive.rank];
  for (const auto& actor : uses.actors) {
    for (const auto& deed : actor->deeds) {
      const bool is_stopped = deed->is_over && !deed->is_good && deed->ended + kOnItsWay < receive.begun;
      const bool is_large = is_letter_for(*deed, receive) && deed->letter.size > wire::kRuntimeBodyMax;
      if (is_large && !is_stopped && !part.book.has(deed->letter)) return true;
    }
  }
  return false;
}

}  // namespace hawser::worldsim
