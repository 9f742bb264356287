#include "worldsim/shrink_judge.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace hawser::worldsim {

NewWorld NewWorld::of(const World& world) {
  NewWorld made;
  made.last_good = world.last_good();
  for (std::uint32_t rank = 0; rank < world.size(); ++rank) made.old_ranks.push_back(world.old_rank(rank));
  for (const std::uint32_t rank : world.failed()) made.failed.push_back(rank);
  return made;
}

/// Two ranks of which neither holds the other for failed have the same world. Where nobody can be taken for failed that
/// lives, all have.
void ShrinkJudge::check_same(const Deed& deed, const Shrunk& mine) const {
  std::vector<std::optional<Shrunk>>& all = deed.realm->shrunk;
  all.resize(deed.realm->size());
  const auto sees = [&](const Shrunk& one, std::uint32_t rank) {
    return std::ranges::find(one.failed, deed.realm->actors[rank]) == one.failed.end() &&
           std::ranges::find(one.actors, deed.realm->actors[rank]) != one.actors.end();
  };
  for (std::uint32_t rank = 0; rank < deed.realm->size(); ++rank) {
    if (!all[rank] || all[rank]->actors == mine.actors) continue;
    const bool are_apart = uses_.fates.accuses() && !(sees(mine, rank) && sees(*all[rank], deed.rank));
    if (!are_apart)
      return uses_.verdict.fail(fmt::format("{} gave other ranks than rank {} got", describe(deed), rank));
  }
  all[deed.rank] = mine;
}

/// Of two worlds that follow one, one has nobody left.
void ShrinkJudge::check_alone(const Deed& deed, const Shrunk& mine) const {
  for (const std::optional<Shrunk>& other : deed.realm->shrunk) {
    if (!other || other->actors == mine.actors) continue;
    const bool lives = std::ranges::any_of(  // A process that has ended is proven dead.
        other->actors, [&](std::size_t actor) { return !uses_.fates.is_gone(actor) && uses_.actors[actor]->is_alive; });
    if (lives) return uses_.verdict.fail(describe(deed) + " made a second world, which both cannot have a majority");
  }
}

/// Nobody goes on with both of two that lost each other.
void ShrinkJudge::check_parted(const Deed& deed, const std::vector<std::size_t>& actors) const {
  const std::optional<Fates::Parting>& parting = uses_.fates.parting();
  if (!parting || deed.begun < parting->when + kNoticeMax) return;
  const auto is_in = [&](std::size_t actor) { return std::ranges::find(actors, actor) != actors.end(); };
  if (is_in(parting->one) && is_in(parting->other)) {
    uses_.verdict.fail(describe(deed) + " made a world with two ranks that had lost each other");
  }
}

/// The new world has more than half of those whose end nobody can have proven. Some may have died since it was decided,
/// which only makes this easier to meet.
void ShrinkJudge::check_majority(const Deed& deed, std::size_t ranks) const {
  const Realm& realm = *deed.realm;
  std::size_t living = 0;
  for (std::uint32_t rank = 0; rank < realm.size(); ++rank) {
    living += uses_.actors[realm.actors[rank]]->is_alive && !realm.parts[rank].is_left ? 1 : 0;
  }
  if (2 * ranks > living) return;
  uses_.verdict.fail(
      fmt::format("{} goes on with {} ranks of {} that live, which is no majority", describe(deed), ranks, living));
}

void ShrinkJudge::check_last_good(const Deed& deed, std::uint64_t last_good) const {
  const Part& part = part_of(deed);
  for (std::uint64_t number = deed.realm->first_number; number <= last_good; ++number) {
    if (number == 0 || part.good.contains(number)) continue;
    uses_.verdict.fail(fmt::format("{} says that collectives up to {} ended well, but {} did not here", describe(deed),
                                   last_good, number));
  }
}

std::vector<std::size_t> ShrinkJudge::check(const Deed& deed, const NewWorld& world) const {
  const Realm& parent = *deed.realm;
  std::vector<std::size_t> actors;
  for (const std::uint32_t old : world.old_ranks) {
    const bool in_order = actors.empty() || parent.actors[old] > actors.back();
    if (!in_order) uses_.verdict.fail(describe(deed) + " gave ranks in another order than before");
    actors.push_back(parent.actors[old]);
  }
  std::vector<std::size_t> failed;
  for (const std::uint32_t rank : world.failed) failed.push_back(actors[rank]);
  for (const std::size_t actor : parent.actors) {
    const bool is_in = std::ranges::find(actors, actor) != actors.end();
    if (!is_in && !uses_.fates.is_gone(actor) && !uses_.fates.accuses()) {
      uses_.verdict.fail(fmt::format("{} left out {}, which lives", describe(deed), uses_.actors[actor]->name));
    }
  }
  if (uses_.rules.has_majority) {
    check_majority(deed, actors.size());
    check_alone(deed, {.actors = actors, .failed = failed});
  }
  check_parted(deed, actors);
  check_same(deed, {.actors = actors, .failed = failed});
  check_last_good(deed, world.last_good);
  return actors;
}

}  // namespace hawser::worldsim
