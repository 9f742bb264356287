#include "agent/own_card.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/try.h"
#include "wire/card_source.h"

namespace hawser::agent {

void OwnCard::open(const backend::Identity& who) {
  const base::MutexLock lock(mutex_);
  who_ = who;
}

void OwnCard::note_change(const backend::RegionId& region, bool is_removal) {
  if (changes_ == nullptr) changes_ = std::make_unique<std::deque<Change>>();
  changes_->push_back({.revision = new_revision(), .region = region, .is_removal = is_removal});
  if (changes_->size() > kChangesMax) changes_->pop_front();
}

void OwnCard::end_deltas() {
  changes_.reset();
  new_revision();
}

OwnCard::Told* OwnCard::find(const backend::RegionId& id) {
  if (id.index >= regions_.size()) return nullptr;
  Told& told = regions_[id.index];
  return told.entry != nullptr && told.entry->generation == id.generation ? &told : nullptr;
}

const OwnCard::Told* OwnCard::find(std::uint32_t index) const {
  return index < regions_.size() && regions_[index].entry != nullptr ? &regions_[index] : nullptr;
}

void OwnCard::say_driven(bool driven) {
  const base::MutexLock lock(mutex_);
  if (std::exchange(who_.driven, driven) != driven) new_revision();
}

void OwnCard::add_regions(std::span<Told> regions) {
  const base::MutexLock lock(mutex_);
  for (Told& each : regions) {
    const backend::RegionId id{each.entry->index, each.entry->generation};
    if (id.index >= regions_.size()) regions_.resize(id.index + 1);
    regions_[id.index] = std::move(each);
    ++told_;
    note_change(id, false);
  }
}

void OwnCard::remove_regions(std::span<const backend::RegionId> ids) {
  const base::MutexLock lock(mutex_);
  for (const backend::RegionId& id : ids) {
    Told* const told = find(id);
    if (told == nullptr) continue;
    *told = {};
    --told_;
    note_change(id, true);
  }
}

void OwnCard::add_backend(std::uint32_t number, std::string name, std::string address, std::span<const Extra> extras) {
  const base::MutexLock lock(mutex_);
  backends_.push_back({.number = number, .name = std::move(name), .address = std::move(address)});
  for (const auto& [id, bytes] : extras) {
    Told* const told = find(id);
    if (told != nullptr && !bytes.empty()) told->extras.add(number, bytes);
  }
  end_deltas();
}

void OwnCard::renew_extras(std::uint32_t number, std::span<const Extra> extras) {
  const base::MutexLock lock(mutex_);
  for (const auto& [id, bytes] : extras) {
    if (Told* const told = find(id)) told->extras.replace(number, bytes);
  }
  end_deltas();
}

/// Regions as the books have them, borrowed.
class OwnCard::Source final : public wire::CardSource {
 public:
  Source(const std::vector<Backend>& backends, const Chosen& regions) : backends_(backends), regions_(regions) {}

  std::size_t count() const override { return regions_.size(); }
  const wire::CardRegion& next(std::span<const wire::CardExtra>* extras) override {
    constexpr std::size_t kAhead = 16;  // They lie all over memory, and there may be many.
    if (at_ + kAhead < regions_.size()) fetch_early(regions_[at_ + kAhead]->entry.get());
    const Told& told = *regions_[at_++];
    const backend::RegionEntry& entry = *told.entry;
    extras_.clear();
    told.extras.for_each([this](std::uint32_t number, std::string_view bytes) {
      const std::optional<std::uint32_t> place = place_of(number);
      if (place) extras_.push_back({.backend = *place, .bytes = bytes});
    });
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
  std::optional<std::uint32_t> place_of(std::uint32_t number) const {
    const auto at = std::ranges::find(backends_, number, &Backend::number);
    if (at == backends_.end()) return std::nullopt;
    return static_cast<std::uint32_t>(at - backends_.begin());
  }

  const std::vector<Backend>& backends_;
  const Chosen& regions_;
  std::size_t at_ = 0;
  wire::CardRegion region_;
  std::vector<wire::CardExtra> extras_;
};

Status OwnCard::encode(const wire::Card& head, const Chosen& regions, std::string* out) const {
  Source source(backends_, regions);
  return wire::encode(head, source, out);
}

wire::Card OwnCard::head() const {
  wire::Card card;
  card.version_min = who_.version_min;
  card.version_max = who_.version_max;
  card.driven = who_.driven;
  card.name = who_.name;
  card.incarnation = who_.incarnation;
  card.public_key = who_.public_key;
  card.born = who_.born;
  card.admission = who_.admission;
  card.revision = revision();
  card.backends.reserve(backends_.size());
  for (const Backend& open : backends_) card.backends.push_back({.name = open.name, .address = open.address});
  return card;
}

OwnCard::Chosen OwnCard::all_regions() const {
  Chosen all;
  all.reserve(told_);
  for (const Told& told : regions_) {
    if (told.entry != nullptr) all.push_back(&told);
  }
  return all;
}

bool OwnCard::has_changes_since(std::uint64_t revision) const {
  if (revision == 0 || revision > this->revision()) return false;  // It never was.
  if (revision == this->revision()) return true;                   // There are none.
  return changes_ != nullptr && changes_->front().revision <= revision + 1;
}

// What this costs is up to what changed: each session is told of each change, of however many regions there are.
OwnCard::Chosen OwnCard::changes_since(std::uint64_t revision, wire::Card* card) const {
  if (changes_ == nullptr) return {};
  std::set<std::uint32_t> fresh;
  for (auto change = std::ranges::upper_bound(*changes_, revision, {}, &Change::revision); change != changes_->end();
       ++change) {
    if (change->is_removal) {
      card->removed.push_back({.index = change->region.index, .generation = change->region.generation});
    } else {
      fresh.insert(change->region.index);
    }
  }
  std::sort(card->removed.begin(), card->removed.end(), [](const wire::CardRemoval& a, const wire::CardRemoval& b) {
    return a.index != b.index ? a.index < b.index : a.generation < b.generation;
  });
  Chosen regions;
  for (const std::uint32_t index : fresh) {
    if (const Told* const told = find(index)) regions.push_back(told);
  }
  return regions;
}

Result<std::string> OwnCard::since(std::uint64_t revision) const {
  std::string card;
  HAWSER_TRY(append_since(revision, &card));
  return card;
}

Status OwnCard::append_since(std::uint64_t revision, std::string* out) const {
  const base::MutexLock lock(mutex_);
  wire::Card card = head();
  if (!has_changes_since(revision)) return encode(card, all_regions(), out);
  card.kind = wire::CardKind::kDelta;
  card.base_revision = revision;
  const Chosen regions = changes_since(revision, &card);
  return encode(card, regions, out);
}

Result<std::string> OwnCard::partial(std::span<const std::uint32_t> indices) const {
  std::string card;
  HAWSER_TRY(append_partial(indices, &card));
  return card;
}

Status OwnCard::append_partial(std::span<const std::uint32_t> indices, std::string* out) const {
  Chosen chosen;
  chosen.reserve(indices.size());
  const base::MutexLock lock(mutex_);
  for (const std::uint32_t index : indices) {
    const Told* const told = find(index);
    // One that is being registered or closed is nobody's to use.
    if (told == nullptr) {
      return Status(Code::kNotFound, "partial_card: there is no region #" + std::to_string(index))
          .with_advice("name open regions by Region::index()");
    }
    chosen.push_back(told);
  }
  std::ranges::sort(chosen);  // They lie in one list by index, so this is the order of indices.
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  wire::Card card = head();
  card.kind = wire::CardKind::kPartial;
  return encode(card, chosen, out);
}

}  // namespace hawser::agent
