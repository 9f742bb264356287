#include "sim/copies.h"

#include <utility>

#include <fmt/format.h>

#include "agent/inner_peers.h"
#include "agent/inner_simulator.h"
#include "base/bytes.h"
#include "base/inside.h"

namespace hawser::simulation {
namespace {

constexpr std::size_t kCopiesMax = 48;

bool may_act(const Life& life) { return life.alive && !life.closing && life.host->running(); }

}  // namespace

void Copies::act() {
  Life& life = theater_.at(rng_.below(theater_.nodes()));
  if (theater_.judge().failed() || !may_act(life)) return;
  if (copies_.empty() || rng_.chance(0.5)) return keep(life);
  read(life, copies_[rng_.below(copies_.size())]);
}

void Copies::keep(Life& owner) {
  Copy copy{.owner = &owner, .card = {}, .revision = owner.agent.card_revision(), .table = {}, .of_table = nullptr};
  std::vector<const Area*> open;
  std::vector<std::uint32_t> indices;
  for (const auto& area : owner.areas) {
    if (area->closing || area->bait) continue;
    open.push_back(area.get());
    if (rng_.chance(0.4)) indices.push_back(area->truth->index);
  }
  Result<std::string> card = rng_.chance(0.4) ? owner.agent.card() : owner.agent.partial_card(indices);
  if (!card) return theater_.judge().fail(owner, "no copy of its card: " + card.error().to_string());
  copy.card = *std::move(card);
  if (!open.empty()) {
    const Area& area = *open[rng_.below(open.size())];
    copy.table = area.region.table(8).encode().value();
    copy.of_table = area.truth;
  }
  if (copies_.size() < kCopiesMax) {
    copies_.push_back(std::move(copy));
  } else {
    copies_[rng_.below(kCopiesMax)] = std::move(copy);
  }
}

void Copies::read(Life& life, const Copy& copy) {
  if (copy.owner->node == life.node) return;
  Life& now = theater_.at(copy.owner->node);
  const auto bond = life.bonds.find(&now);
  const bool is_met = bond != life.bonds.end() && bond->second.known && !bond->second.broken &&
                      bond->second.peer.state() != PeerState::kDown;
  if (!is_met || !may_act(now)) return;
  if (copy.owner == &now) {
    read_living(life, copy);
  } else {
    read_dead(life, now, copy);
  }
  life.host->wake();
}

void Copies::read_living(Life& life, const Copy& copy) {
  const Peer& peer = life.bonds[copy.owner].peer;
  const auto [revision, before] = agent::inner::card_known(peer);
  theater_.universe().world.note("copy", life.name, copy.revision);
  if (const Result<Peer> same = life.agent.add_peer(copy.card); !same || !agent::inner::is_same(*same, peer)) {
    return theater_.judge().fail(life, "a copy of a known peer's card was refused, or gave another peer");
  }
  const auto [revision_after, after] = agent::inner::card_known(peer);
  // The truth of the same revision replaces a lie.
  const bool is_older = copy.revision < revision + (theater_.settings().lies ? 0 : 1);
  bool is_less = revision_after < revision || (is_older && after != before);
  for (const auto& [index, region] : before) {
    const auto found = after.find(index);
    // Only a newer full card takes regions away.
    is_less = is_less || (found == after.end() ? is_older : found->second.first < region.first);
  }
  if (is_less) {
    return theater_.judge().fail(
        life, fmt::format("an old copy of revision {} changed what is known of {}", copy.revision, copy.owner->name));
  }
  read_table(life, peer, copy);
}

void Copies::read_table(Life& life, const Peer& peer, const Copy& copy) {
  if (copy.table.empty()) return;
  const RangeTable table = peer.import_table(base::as_bytes(copy.table));
  if (!table.status().ok() || agent::inner::key_of(table) == copy.of_table->key) return;
  theater_.judge().fail(life, fmt::format("an old table of {} stands for another region", copy.owner->name));
}

void Copies::read_dead(Life& life, Life& now, const Copy& copy) {
  const Peer living = life.bonds[&now].peer;
  theater_.universe().world.note("copy of the dead", life.name, copy.owner->number);
  const Result<Peer> dead = life.agent.add_peer(copy.card);
  if (!dead) return theater_.judge().fail(life, "a dead peer's card was refused: " + dead.error().to_string());
  if (dead->state() != PeerState::kKnown) return;  // Its end is not noticed yet.
  const bool is_ordered =
      living.state() == PeerState::kUp || agent::inner::born_of(living) > agent::inner::born_of(*dead);
  if (is_ordered && agent::inner::card_known(living).revision > 0) {
    const Result<Peer> found = life.agent.find_peer(now.name, Duration::zero());
    // A third one may be up, whose end is not noticed yet.
    if (!found || agent::inner::is_same(*found, *dead))
      theater_.judge().fail(life, fmt::format("a dead incarnation displaced the living {}", now.name));
  }
  read_table(life, living, copy);
  static_cast<void>(life.agent.invalidate(*dead));
}

}  // namespace hawser::simulation
