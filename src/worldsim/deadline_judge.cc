#include "worldsim/deadline_judge.h"

#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace hawser::worldsim {
namespace {

/// An operation may end so long after its deadline.
constexpr Duration kSlack = std::chrono::milliseconds(300);
/// A rank that knows of a failure ends all that the failure ends at once.
constexpr Duration kAtOnce = std::chrono::milliseconds(20);

}  // namespace

void DeadlineJudge::observe(const Actor& actor) const {
  const Instant now = uses_.universe.world.now();
  if (uses_.verdict.failed() || !actor.is_alive || actor.is_blocking || !actor.host->running() ||
      now < uses_.times.troubled_until())
    return;
  for (const Deed* const deed : actor.pending) {
    check_late(actor, *deed);
    if (!uses_.verdict.failed()) check_doomed(actor, *deed);
    if (uses_.verdict.failed()) return;
  }
}

void DeadlineJudge::check_late(const Actor& actor, const Deed& deed) const {
  const Instant now = uses_.universe.world.now();
  if (now > deed.due + kSlack + actor.excused) {
    std::string all;
    for (const auto& other : uses_.actors) all += "\n  " + describe(*other);
    return uses_.verdict.fail(fmt::format("{} has not ended {:.1f} ms after its deadline. Who waits for whom:{}",
                                          describe(deed),
                                          std::chrono::duration<double, std::milli>(now - deed.due).count(), all));
  }
}

void DeadlineJudge::check_doomed(const Actor& actor, const Deed& deed) const {
  const Instant now = uses_.universe.world.now();
  const Realm& realm = *deed.realm;
  if (!realm.doomed || uses_.fates.has_left_alive(realm)) return;
  const bool is_any = deed.kind == DeedKind::kReceive && !deed.source && realm.bereft;
  if (deed.kind != DeedKind::kCollective && !is_any) return;
  const std::optional<Instant> knows = realm.parts[deed.rank].knows;
  const bool is_landing = is_any && may_be_landing(uses_, deed);
  const Instant told = knows && deed.begun < *knows && !is_landing ? *knows + kAtOnce : Instant::max();
  const Instant doomed = is_any ? *realm.bereft : *realm.doomed;  // A collective that ended badly ends no receive.
  const Instant since = std::max(std::max(doomed, deed.begun), uses_.times.troubled_until());
  if (now > std::min(since + kNoticeMax + actor.excused, told + actor.excused)) {
    return uses_.verdict.fail(
        fmt::format("{} goes on, though a rank failed or a collective ended badly {:.1f} ms before", describe(deed),
                    std::chrono::duration<double, std::milli>(now - since).count()));
  }
}

bool DeadlineJudge::may_recover(const Actor& actor, const Deed& deed) const {
  const Instant now = uses_.universe.world.now();
  if (now < std::max(deed.due, uses_.times.troubled_until() + (deed.due - deed.begun)) + actor.excused) return true;
  if (!actor.main.world.failed().empty())
    uses_.verdict.fail(describe(deed) + " does not come, though the rank knows of a failure");
  return false;
}

}  // namespace hawser::worldsim
