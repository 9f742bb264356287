// Cards of an agent: built from its books, and those of peers taken in.

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "agent/core.h"
#include "base/bytes.h"
#include "base/try.h"
#include "wire/card_source.h"

namespace hawser::agent {

backend::Identity identity_of(const wire::Card& card) {
  return {.name = card.name,
          .incarnation = card.incarnation,
          .public_key = card.public_key,
          .born = card.born,
          .admission = card.admission,
          .driven = card.driven};
}

wire::Card Core::card_head() const {
  wire::Card card;
  card.version_min = identity.version_min;
  card.version_max = identity.version_max;
  card.driven = identity.driven;
  card.name = options.name;
  card.incarnation = identity.incarnation;
  card.public_key = identity.public_key;
  card.born = identity.born;
  card.admission = identity.admission;
  card.revision = card_revision();
  card.backends.reserve(card_backends_.size());
  for (const CardBackend& open : card_backends_) card.backends.push_back({.name = open.name, .address = open.address});
  return card;
}

void Core::say_driven(bool driven) {
  lane.lock();
  if (identity.driven != driven) {
    {
      const base::MutexLock lock(mutex_);
      identity.driven = driven;
    }
    revision_.fetch_add(1, std::memory_order_acq_rel);
    engine.exchange().on_own_change();
    presence.ask();
  }
  lane.unlock();
}

/// Regions as the books have them. The entries are borrowed.
class Core::BookSource final : public wire::CardSource {
 public:
  BookSource(const Core& core, std::span<const backend::RegionEntry* const> entries) : core_(core), entries_(entries) {}

  std::size_t count() const override { return entries_.size(); }
  const wire::CardRegion& next(std::span<const wire::CardExtra>* extras) override HAWSER_NO_THREAD_SAFETY_ANALYSIS {
    constexpr std::size_t kAhead = 16;  // They lie all over memory, and there may be many.
    if (at_ + kAhead < entries_.size()) fetch_early(entries_[at_ + kAhead]);
    const backend::RegionEntry& entry = *entries_[at_++];
    extras_.clear();
    if (entry.index < core_.booked_.size()) {
      core_.booked_[entry.index].extras.for_each([this](std::uint32_t number, std::string_view bytes) {
        const std::optional<std::uint32_t> place = place_of(number);
        if (place) extras_.push_back({.backend = *place, .bytes = bytes});
      });
    }
    region_.index = entry.index;
    region_.generation = entry.generation;
    region_.size = entry.size;
    region_.key = entry.key;
    region_.name = entry.name;
    region_.device = entry.device;
    region_.rights = entry.rights;
    region_.extra_count = static_cast<std::uint16_t>(extras_.size());
    *extras = extras_;
    return region_;
  }

 private:
  /// All that a card tells of it: its name ends a cache line or two further on.
  static void fetch_early(const backend::RegionEntry* entry) {
    __builtin_prefetch(entry);
    __builtin_prefetch(&entry->name);
    __builtin_prefetch(reinterpret_cast<const char*>(&entry->name) + sizeof(entry->name) - 1);
  }
  /// In the card; none of one that failed to open.
  std::optional<std::uint32_t> place_of(std::uint32_t number) const HAWSER_NO_THREAD_SAFETY_ANALYSIS {
    const auto at = std::ranges::find(core_.card_backends_, number, &CardBackend::number);
    if (at == core_.card_backends_.end()) return std::nullopt;
    return static_cast<std::uint32_t>(at - core_.card_backends_.begin());
  }

  const Core& core_;
  const std::span<const backend::RegionEntry* const> entries_;
  std::size_t at_ = 0;
  wire::CardRegion region_;
  std::vector<wire::CardExtra> extras_;
};

Status Core::encode_card(const wire::Card& head, std::span<const backend::RegionEntry* const> entries,
                         std::string* out) const {
  BookSource source(*this, entries);
  return wire::encode(head, source, out);
}

Status Core::encode_card(const wire::Card& head, const std::vector<RegionEntryPtr>& entries, std::string* out) const {
  std::vector<const backend::RegionEntry*> all;
  all.reserve(entries.size());
  for (const RegionEntryPtr& entry : entries) all.push_back(entry.get());
  return encode_card(head, all, out);
}

Result<std::string> Core::card() const { return card_since(0); }

Result<std::string> Core::card_since(std::uint64_t revision) const {
  std::string card;
  HAWSER_TRY(append_card_since(revision, &card));
  return card;
}

Status Core::append_card_since(std::uint64_t revision, std::string* out) const {
  const base::MutexLock lock(mutex_);
  // Only what is booked, and so of the revision that the head names: one that comes next waits for the lock to get in.
  wire::Card card = card_head();
  const bool known = revision > 0 && !changes_.empty() && changes_.front().revision <= revision + 1;
  if (revision > 0 && (known || revision == card.revision)) {
    card.kind = wire::CardKind::kDelta;
    card.base_revision = revision;
  }
  if (card.kind == wire::CardKind::kFull) {
    const auto is_told = [this](std::uint32_t index) HAWSER_NO_THREAD_SAFETY_ANALYSIS { return is_booked(index); };
    const backend::RegionTable::View view = regions.view(is_told);
    return encode_card(card, view.entries(), out);
  }
  // What this costs is up to what changed: each session is told of each change, of however many regions there are.
  std::set<std::uint32_t> fresh;
  for (auto change = std::ranges::upper_bound(changes_, revision, {}, &Change::revision); change != changes_.end();
       ++change) {
    if (change->removed) {
      card.removed.push_back({.index = change->index, .generation = change->generation});
    } else {
      fresh.insert(change->index);
    }
  }
  std::vector<RegionEntryPtr> all;
  for (const std::uint32_t index : fresh) {
    RegionEntryPtr entry = regions.at(index);
    if (entry && is_booked(index) && regions.is_open(index, entry->generation)) all.push_back(std::move(entry));
  }
  std::sort(card.removed.begin(), card.removed.end(), [](const wire::CardRemoval& a, const wire::CardRemoval& b) {
    return a.index != b.index ? a.index < b.index : a.generation < b.generation;
  });
  return encode_card(card, all, out);
}

Result<std::string> Core::partial_card(std::span<const std::uint32_t> indices) const {
  std::string card;
  HAWSER_TRY(append_partial_card(indices, &card));
  return card;
}

Status Core::append_partial_card(std::span<const std::uint32_t> indices, std::string* out) const {
  std::vector<RegionEntryPtr> chosen;
  const base::MutexLock lock(mutex_);
  for (const std::uint32_t index : indices) {
    auto entry = regions.at(index);
    // One that is being registered or closed is nobody's to use.
    if (!entry || !is_booked(index) || !regions.is_open(index, entry->generation)) {
      return Status(Code::kNotFound, "partial_card: there is no region #" + std::to_string(index))
          .with_advice("name open regions by Region::index()");
    }
    chosen.push_back(std::move(entry));
  }
  std::sort(chosen.begin(), chosen.end(), [](const auto& a, const auto& b) { return a->index < b->index; });
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  wire::Card card = card_head();
  card.kind = wire::CardKind::kPartial;
  return encode_card(card, chosen, out);
}

Result<Core::Loaded> Core::load_card(std::span<const std::byte> bytes) {
  HAWSER_TRY_ASSIGN(wire::Card card, wire::decode_card(bytes));
  return load_card(std::move(card));
}

Result<Core::Loaded> Core::load_card(wire::Card card) {
  HAWSER_TRY_ASSIGN(std::shared_ptr<PeerCore> peer, meet(identity_of(card)));
  if (peer->is_self) return Loaded{.peer = std::move(peer), .change = {}};  // Its own books are fresher than any card.
  const base::MutexLock lock(peer->mutex);
  peer->ticket = {.public_key = card.public_key, .admission = card.admission};  // One incarnation has one.
  std::unique_ptr<CardStore> first = peer->card ? nullptr : std::make_unique<CardStore>();
  Result<CardStore::Change> change = (first ? first : peer->card)->take(std::move(card));
  if (!change) return change.error().with_peer(peer->name);
  if (first) peer->card = std::move(first);
  if (change->any) peer->chunk_limits.reset();
  if (change->is_whole || !change->gone.empty()) peer->regions_gone.fetch_add(1, std::memory_order_acq_rel);
  return Loaded{.peer = peer, .change = *std::move(change)};
}

Result<std::shared_ptr<PeerCore>> Core::take_card(std::span<const std::byte> bytes) {
  HAWSER_TRY_ASSIGN(wire::Card card, wire::decode_card(bytes));
  return take_card(std::move(card));
}

Result<std::shared_ptr<PeerCore>> Core::take_card(wire::Card card) {
  HAWSER_TRY_ASSIGN(Loaded loaded, load_card(std::move(card)));
  if (!loaded.change.any) return std::move(loaded.peer);  // Clients load the same card again at each request.
  lane.lock();
  engine.exchange().on_loaded(*loaded.peer, loaded.change, now());
  lane.unlock();
  lane.wake();
  return std::move(loaded.peer);
}

Result<std::shared_ptr<PeerCore>> Core::add_peer(wire::Card card) {
  const std::shared_ptr<PeerCore> known = known_peer(card.incarnation);
  // Not buried yet. A caller that loads its card again wants to begin anew with it.
  if (known && known->state.load(std::memory_order_acquire) == PeerState::kDown) forget(*known);
  return take_card(std::move(card));
}

std::uint64_t Core::known_revision(PeerCore& peer) const {
  const base::MutexLock lock(peer.mutex);
  return peer.card && peer.card->complete() ? peer.card->revision() : 0;
}

}  // namespace hawser::agent
