#include "worldsim/fates.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace hawser::worldsim {

void Fates::on_gone(const Actor& actor) {
  for (const auto& each : actors_) look_at_ways(*each);
  look_at_verdict(actor);
  ways_.note_gone(static_cast<std::uint32_t>(actor.number));
  count_as_gone(actor);
}

void Fates::count_as_gone(const Actor& actor) {
  gone_.insert(actor.number);
  for (const auto& realm : realms_.all()) {
    const auto at = std::ranges::find(realm->actors, actor.number);
    if (at == realm->actors.end()) continue;
    Part& part = realm->parts[static_cast<std::size_t>(at - realm->actors.begin())];
    if (!realm->bereft) realm->bereft = universe_.world.now();
    if (!std::exchange(part.is_left, true)) realms_.doom(*realm);
  }
}

void Fates::on_parted(const Actor& one, const Actor& other) {
  parting_ = {.one = one.number, .other = other.number, .when = universe_.world.now()};
  if (!ways_.is_sparse()) return count_as_gone(one.number < other.number ? other : one);
  for (const auto& each : actors_) look_at_ways(*each);
  bool has_changed = !left_.empty();  // Ranks leave, or go by smaller graphs: what they know of each other differs.
  for (const auto& each : actors_)
    has_changed = has_changed || ways_.generation(static_cast<std::uint32_t>(each->number)) > 0;
  if (has_changed) may_accuse();
  parting_->out = ways_.note_lost(static_cast<std::uint32_t>(one.number), static_cast<std::uint32_t>(other.number));
  for (const std::uint32_t rank : parting_->out) {
    universe_.world.note("to be left out", actors_[rank]->name);
    ways_.note_gone(rank);
    count_as_gone(*actors_[rank]);
  }
}

void Fates::on_left(const Actor& actor) {
  for (const auto& realm : realms_.all()) {
    const auto at = std::ranges::find(realm->actors, actor.number);
    if (at == realm->actors.end()) continue;
    realm->parts[static_cast<std::size_t>(at - realm->actors.begin())].is_left = true;
    realm->disturbances.insert(Code::kCancelled);
  }
}

void Fates::on_out(const Actor& actor) {
  left_.insert(static_cast<std::uint32_t>(actor.number));
  if (!ways_.is_sparse() || accuses() || gone_.contains(actor.number)) return;
  for (const std::size_t number : actor.main.realm->actors) {
    const Actor& other = *actors_[number];
    if (other.has_said_left || gone_.contains(number)) continue;
    verdict_.fail(fmt::format("{} leaves, and {} still needs it as a relay", actor.name, other.name));
  }
}

void Fates::set_topology(const Topology& topology, std::size_t ranks) {
  ways_.open(topology, static_cast<std::uint32_t>(ranks));
}

void Fates::look_at_ways(const Actor& actor) {
  const std::shared_ptr<runtime::RankSeat> seat = ways_.is_sparse() && actor.is_alive ? actor.seat.lock() : nullptr;
  if (seat == nullptr) return;
  actor.turner.under_lane([&] {
    const runtime::Relay& relay = *seat->relay;
    const auto rank = static_cast<std::uint32_t>(actor.number);
    const std::uint64_t generation = relay.routes().generation();
    if (generation > ways_.generation(rank)) ways_.note_graph(rank, generation, relay.routes().graph());
    if (relay.dropped() > 0) verdict_.fail(fmt::format("{} dropped {} frames", actor.name, relay.dropped()));
  });
}

/// One of two that lost each other may end before all have heard the verdict. If it is the one that stays, nobody need
/// be left out. If it is the other one, a rank that it was the only relay of is by itself.
void Fates::look_at_verdict(const Actor& actor) {
  const bool is_party = parting_ && (actor.number == parting_->one || actor.number == parting_->other);
  if (!ways_.is_sparse() || !is_party) return;
  const bool stays = !gone_.contains(actor.number);
  for (const auto& each : actors_) {
    const std::shared_ptr<runtime::RankSeat> seat = each->is_alive ? each->seat.lock() : nullptr;
    if (seat == nullptr || each->number == actor.number || gone_.contains(each->number) == stays) continue;
    each->turner.under_lane([&] {
      const bool has_heard =
          stays ? std::ranges::all_of(parting_->out, [&](std::uint32_t rank) { return seat->relay->has_failed(rank); })
                : seat->relay->is_excluded();
      if (!has_heard) may_accuse();
    });
  }
}

bool Fates::is_lost(const Deed& deed, std::uint32_t rank) const {
  const std::size_t other = deed.realm->actors[rank];
  if (gone_.contains(other) || deed.realm->parts[rank].is_left) return true;
  const auto own = static_cast<std::uint32_t>(deed.realm->actors[deed.rank]);
  return !ways_.joins(own, static_cast<std::uint32_t>(other), left_);
}

bool Fates::all_live(const Realm& realm) const {
  const std::size_t world = actors_[realm.actors.front()]->world;
  return std::ranges::none_of(gone_, [&](std::size_t actor) { return actors_[actor]->world == world; });
}

bool Fates::has_gone(const Realm& realm) const {
  return std::ranges::any_of(realm.actors, [&](std::size_t actor) { return gone_.contains(actor); });
}

bool Fates::has_left(const Realm& realm) {
  return std::ranges::any_of(realm.parts, [](const Part& part) { return part.is_left; });
}

bool Fates::has_left_alive(const Realm& realm) const {
  for (std::uint32_t rank = 0; rank < realm.size(); ++rank) {
    if (realm.parts[rank].is_left && !gone_.contains(realm.actors[rank])) return true;
  }
  return false;
}

bool Fates::has_lost(const Deed& deed, std::string_view name) const {
  for (std::uint32_t rank = 0; rank < deed.realm->size(); ++rank) {
    if (actors_[deed.realm->actors[rank]]->name == name) return is_lost(deed, rank);
  }
  return false;
}

}  // namespace hawser::worldsim
