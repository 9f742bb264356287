#include "worldsim/judge.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

namespace hawser::worldsim {

void WorldJudge::on_begun(Deed& deed) {
  ++deeds_;
  Part& part = part_of(deed);
  if (deed.kind == DeedKind::kCollective) ++part.begun;
  if (deed.kind == DeedKind::kReceive) deed.posted = part.book.post(deed.source, deed.tag);
  universe_.world.note("begun", describe(deed), deed.uid);
}

void WorldJudge::on_end(Deed& deed, const Status& status) {
  deed.is_over = true;
  deed.ended = universe_.world.now();
  deed.is_good = status.ok();
  universe_.world.note("ended", describe(deed), deed.uid, static_cast<std::uint64_t>(status.code()));
  ++(status.ok() ? good_ : bad_);
  statuses_.check(deed, status);
  if (failed()) return;
  if (deed.kind == DeedKind::kCollective) results_.check_collective(deed, status);
  if (deed.kind == DeedKind::kReceive) results_.check_received(deed, status);
  if (deed.kind == DeedKind::kCall) calls_.check_answer(deed, status);
  for (Loan* const loan : {deed.input, deed.output}) {
    if (loan != nullptr && !loan->is_back) vault_.take_back(*loan);
  }
}

Realm* WorldJudge::on_shrunk(Deed& deed, const World& world) {
  return &realm_of(*deed.realm, false, shrinks_.check(deed, NewWorld::of(world)));
}

void WorldJudge::observe(const Actor& actor) {
  fates_.look_at_ways(actor);
  deadlines_.observe(actor);
}

void WorldJudge::check_failed(const Actor& actor, const Membership& membership) {
  if (fates_.is_gone(actor.number)) return;  // It lost the rank that stays.
  for (const std::uint32_t rank : membership.world.failed()) {
    const std::size_t other = membership.realm->actors[rank];
    if (fates_.is_gone(other) || accuses()) continue;
    fail(fmt::format("{} holds {} for failed, which lives", actor.name, actors_[other]->name));
  }
}

void WorldJudge::check_kept(const Actor& actor) {
  const std::shared_ptr<runtime::RankSeat> seat = actor.seat.lock();
  std::size_t kept = 0;
  actor.turner.under_lane([&] { kept = seat->mailbox->kept_without_world(); });
  if (kept > 0) fail(fmt::format("{} keeps messages of worlds that it has left: {}", actor.name, kept));
}

void WorldJudge::check_lost_letters() {
  std::map<const Part*, std::size_t> missing;
  for (const auto& actor : actors_) {
    for (const auto& deed : actor->deeds) {
      if (deed->kind != DeedKind::kSend || !deed->is_good) continue;  // What ended badly may have been taken back.
      const bool is_parted = fates_.is_gone(actor->number) || fates_.is_gone(deed->realm->actors[deed->letter.to]);
      if (is_parted) continue;
      const Part& part = deed->realm->parts[deed->letter.to];
      if (is_passed(*actor, *deed) && !part.book.has(deed->letter) && ++missing[&part] > part.book.lost()) {
        return fail(describe(*deed) + " was passed by a later one and never came");
      }
    }
  }
}

/// A later letter of the same kind came.
bool WorldJudge::is_passed(const Actor& actor, const Deed& send) const {
  const Letter& letter = send.letter;
  const Part& part = send.realm->parts[letter.to];
  return std::ranges::any_of(actor.deeds, [&](const auto& other) {
    const Letter& its = other->letter;
    const bool is_later = other->kind == DeedKind::kSend && other->realm == send.realm && its.to == letter.to &&
                          its.tag == letter.tag && its.priority == letter.priority && its.number > letter.number;
    return is_later && part.book.has(its);
  });
}

void WorldJudge::check_end() {
  for (const Deed* const deed : misfits_) {
    if (!accuses()) results_.check_misfit(*deed);
  }
  for (const auto& actor : actors_) {
    for (const auto& deed : actor->deeds) {
      if (!deed->is_over && actor->is_alive) fail(describe(*deed) + " has not ended");
    }
    if (!actor->seat.expired()) fail(actor->name + " has ended, and something still holds its worlds");
  }
  if (!accuses()) check_lost_letters();
  if (const Loan* const touched = vault_.first_touched()) {
    for (const auto& actor : actors_) {
      for (const auto& deed : actor->deeds) {
        if (deed->uid == touched->owner) fail(describe(*deed) + " has ended, and its memory was changed afterwards");
      }
    }
  }
}

}  // namespace hawser::worldsim
