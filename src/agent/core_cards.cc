// Cards of an agent: built from its books, and those of peers taken in.

#include <algorithm>

#include "agent/core.h"
#include "base/bytes.h"

namespace hawser::agent {

wire::Card Core::card_head() const {
  wire::Card card;
  card.driven = identity.driven;
  card.name = options.name;
  card.incarnation = identity.incarnation;
  card.public_key = identity.public_key;
  card.revision = card_revision();
  // The list of backends only grows, under the lane's lock and this mutex's owner; reports name those that are open.
  for (const auto& [name, address] : addresses_) card.backends.push_back({.name = name, .address = address});
  return card;
}

void Core::put_region(wire::Card& card, const backend::RegionEntry& entry) const {
  wire::CardRegion region;
  region.index = entry.index;
  region.generation = entry.generation;
  region.size = entry.size;
  region.key = entry.key;
  region.name = entry.name;
  region.device = entry.device;
  region.rights = entry.rights;
  region.extra_first = static_cast<std::uint32_t>(card.extras.size());
  if (entry.index < booked_.size()) {
    for (const auto& [name, bytes] : booked_[entry.index].extras) {
      const int backend = card.find_backend(name);
      if (backend >= 0) card.extras.push_back({.backend = static_cast<std::uint32_t>(backend), .bytes = bytes});
    }
  }
  region.extra_count = static_cast<std::uint16_t>(card.extras.size() - region.extra_first);
  card.regions.push_back(region);
}

Result<std::string> Core::card() const { return card_since(0); }

Result<std::string> Core::card_since(std::uint64_t revision) const {
  const base::MutexLock lock(mutex_);
  const auto all = regions.all();  // Keeps the names alive that the card views.
  wire::Card card = card_head();
  const bool known = revision > 0 && !changes_.empty() && changes_.front().revision <= revision + 1;
  if (revision > 0 && (known || revision == card.revision)) {
    card.kind = wire::CardKind::kDelta;
    card.base_revision = revision;
  }
  if (card.kind == wire::CardKind::kFull) {
    card.regions.reserve(all.size());
    for (const auto& entry : all) {
      // Only those of the revision that the head names: one that comes next waits for the lock to get in here.
      if (is_booked(entry->index)) put_region(card, *entry);
    }
    return wire::encode(card);
  }
  std::map<std::uint32_t, const backend::RegionEntry*> fresh;
  for (const Change& change : changes_) {
    if (change.revision <= revision) continue;
    if (change.removed) {
      card.removed.push_back({.index = change.index, .generation = change.generation});
    } else {
      fresh[change.index] = nullptr;
    }
  }
  for (const auto& entry : all) {
    if (!is_booked(entry->index)) continue;
    if (const auto found = fresh.find(entry->index); found != fresh.end()) found->second = entry.get();
  }
  for (const auto& [index, entry] : fresh) {
    if (entry != nullptr) put_region(card, *entry);
  }
  std::sort(card.removed.begin(), card.removed.end(), [](const wire::CardRemoval& a, const wire::CardRemoval& b) {
    return a.index != b.index ? a.index < b.index : a.generation < b.generation;
  });
  return wire::encode(card);
}

Result<std::string> Core::partial_card(std::span<const std::uint32_t> indices) const {
  std::vector<std::shared_ptr<const backend::RegionEntry>> chosen;
  for (const std::uint32_t index : indices) {
    auto entry = regions.at(index);
    if (!entry) {
      return Status(Code::kNotFound, "partial_card: there is no region #" + std::to_string(index))
          .with_advice("name open regions by Region::index()");
    }
    chosen.push_back(std::move(entry));
  }
  std::sort(chosen.begin(), chosen.end(), [](const auto& a, const auto& b) { return a->index < b->index; });
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  const base::MutexLock lock(mutex_);
  wire::Card card = card_head();
  card.kind = wire::CardKind::kPartial;
  for (const auto& entry : chosen) put_region(card, *entry);
  return wire::encode(card);
}

Result<std::shared_ptr<PeerCore>> Core::load_card(std::span<const std::byte> bytes) {
  Result<wire::Card> card = wire::decode_card(bytes);
  if (!card) return card.error();
  const Result<std::shared_ptr<PeerCore>> met = meet(
      {.name = card->name, .incarnation = card->incarnation, .public_key = card->public_key, .driven = card->driven});
  if (!met) return met.error();
  PeerCore& peer = **met;
  if (peer.is_self) return *met;  // Its own books are fresher than any card.
  const base::MutexLock lock(peer.mutex);
  Result<std::shared_ptr<CardStore>> merged = CardStore::merge(peer.card, std::move(*card));
  if (!merged) return merged.error().with_peer(peer.name);
  peer.card = std::move(*merged);
  peer.chunk_limits.reset();
  return *met;
}

Result<std::shared_ptr<PeerCore>> Core::take_card(std::span<const std::byte> bytes) {
  Result<std::shared_ptr<PeerCore>> peer = load_card(bytes);
  if (!peer) return peer;
  lane.lock();
  engine.on_card_loaded(**peer, now());
  lane.unlock();
  lane.wake();
  return peer;
}

std::uint64_t Core::known_revision(PeerCore& peer) const {
  const base::MutexLock lock(peer.mutex);
  return peer.card && peer.card->complete() ? peer.card->revision() : 0;
}

}  // namespace hawser::agent
