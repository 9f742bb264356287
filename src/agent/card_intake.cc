#include "agent/card_intake.h"

#include <algorithm>
#include <utility>

#include "base/try.h"

namespace hawser::agent {

backend::Identity identity_of(const wire::Card& card) {
  return {.name = card.name,
          .incarnation = card.incarnation,
          .public_key = card.public_key,
          .born = card.born,
          .admission = card.admission,
          .driven = card.driven};
}

std::uint64_t known_revision(PeerCore& peer) {
  PeerUse* const its = peer.used();
  if (its == nullptr) return peer.first_card()->revision;  // A full one, or none.
  const base::MutexLock lock(its->mutex);
  return its->card && its->card->complete() ? its->card->revision() : 0;
}

Result<CardIntake::Loaded> CardIntake::load(std::span<const std::byte> bytes) {
  HAWSER_TRY_ASSIGN(const CardRef shared, share_card(bytes));
  if (shared) {
    HAWSER_TRY_ASSIGN(std::optional<Loaded> loaded, load_shared(shared));
    if (loaded) return *std::move(loaded);
  }
  HAWSER_TRY_ASSIGN(wire::Card card, wire::decode_card(bytes));
  return load(std::move(card));
}

/// Nothing: more is known of the peer than this card, so it has to be decoded.
Result<std::optional<CardIntake::Loaded>> CardIntake::load_shared(const CardRef& card) {
  const bool is_own = card->incarnation == peers_.self()->incarnation;
  if (!is_own && card->regions > bound_.regions) return too_many(card->name, card->regions);
  HAWSER_TRY_ASSIGN(PeerBook::Met met, peers_.meet(card));
  if (met.is_new) return Loaded{.peer = std::move(met.peer), .change = {.any = true, .is_whole = true, .gone = {}}};
  const bool is_known = met.peer->first_card() == card && met.peer->used() == nullptr;
  if (!is_own && !is_known) return std::optional<Loaded>();
  return Loaded{.peer = std::move(met.peer), .change = {}};
}

Status CardIntake::check_regions(const CardStore& store, const wire::Card& card, std::string_view peer) const {
  const bool is_full = card.kind == wire::CardKind::kFull;
  std::size_t after = card.regions.size() + (is_full ? 0 : store.count());
  if (after <= bound_.regions) return {};
  if (!is_full) {  // Regions that are told anew take no further place, and some may go.
    after -= static_cast<std::size_t>(std::ranges::count_if(
        card.regions, [&](const wire::CardRegion& region) { return store.find(region.index) != nullptr; }));
    after -= static_cast<std::size_t>(std::ranges::count_if(card.removed, [&](const wire::CardRemoval& removal) {
      const wire::CardRegion* const known = store.find(removal.index);
      const bool is_there = known != nullptr && known->generation == removal.generation;
      return is_there && !std::ranges::binary_search(card.regions, removal.index, {}, &wire::CardRegion::index);
    }));
    if (after <= bound_.regions) return {};
  }
  return too_many(peer, after);
}

Status CardIntake::too_many(std::string_view peer, std::size_t regions) const {
  return Status(Code::kBusy, "the card of " + std::string(peer) + " tells of " + std::to_string(regions) +
                                 " regions, and agent '" + bound_.agent +
                                 "' keeps limits.peer_regions = " + std::to_string(bound_.regions))
      .with_peer(peer)
      .with_advice(
          "register fewer regions there, tell of some by a partial card, or raise limits.peer_regions "
          "(HAWSER_LIMITS_PEER_REGIONS) at agent '" +
          bound_.agent + "'");
}

Result<CardIntake::Loaded> CardIntake::load(wire::Card card) {
  HAWSER_TRY_ASSIGN(std::shared_ptr<PeerCore> peer, peers_.meet(identity_of(card)));
  if (peer->is_self) return Loaded{.peer = std::move(peer), .change = {}};  // Its own books are fresher than any card.
  PeerUse& its = peer->use();
  const base::MutexLock lock(its.mutex);
  its.ticket = {.public_key = card.public_key, .admission = card.admission};  // One incarnation has one.
  std::unique_ptr<CardStore> first = its.card ? nullptr : std::make_unique<CardStore>();
  CardStore& store = first ? *first : *its.card;
  HAWSER_TRY(check_regions(store, card, peer->name));
  Result<CardStore::Change> change = store.take(std::move(card));
  if (!change) return change.error().with_peer(peer->name);
  if (first) its.card = std::move(first);
  if (change->any) its.chunk_limits.reset();
  if (change->is_whole || !change->gone.empty()) its.regions_gone.fetch_add(1, std::memory_order_acq_rel);
  return Loaded{.peer = peer, .change = *std::move(change)};
}

Result<std::shared_ptr<PeerCore>> CardIntake::take(std::span<const std::byte> bytes) {
  HAWSER_TRY_ASSIGN(Loaded loaded, load(bytes));
  return told(std::move(loaded));
}

Result<std::shared_ptr<PeerCore>> CardIntake::take(wire::Card card) {
  HAWSER_TRY_ASSIGN(Loaded loaded, load(std::move(card)));
  return told(std::move(loaded));
}

/// The peer, once the engine knows.
std::shared_ptr<PeerCore> CardIntake::told(Loaded loaded) {
  if (!loaded.change.any) return std::move(loaded.peer);  // Clients load the same card again at each request.
  {
    const InLaneGuard guard(lane_);
    host_.on_card_loaded(*loaded.peer, loaded.change);
  }
  lane_.wake();
  return std::move(loaded.peer);
}

/// Not buried yet. A caller that loads its card again wants to begin anew with it.
void CardIntake::forget_if_down(const base::Id128& incarnation) {
  const std::shared_ptr<PeerCore> known = peers_.known(incarnation);
  if (known && known->state.load(std::memory_order_acquire) == PeerState::kDown) host_.forget(*known);
}

Result<std::shared_ptr<PeerCore>> CardIntake::take_anew(std::span<const std::byte> bytes) {
  HAWSER_TRY_ASSIGN(const CardRef shared, share_card(bytes));
  if (!shared) {
    HAWSER_TRY_ASSIGN(wire::Card card, wire::decode_card(bytes));
    return take_anew(std::move(card));
  }
  forget_if_down(shared->incarnation);
  return take(bytes);
}

Result<std::shared_ptr<PeerCore>> CardIntake::take_anew(wire::Card card) {
  forget_if_down(card.incarnation);
  return take(std::move(card));
}

}  // namespace hawser::agent
