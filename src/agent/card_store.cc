#include "agent/card_store.h"

#include <algorithm>

namespace hawser::agent {
namespace {

/// Above so many the texts are gathered into one: of regions that are gone, nothing is kept for ever.
constexpr std::size_t kTextsMax = 64;

const wire::CardRegion* find_in(const std::vector<wire::CardRegion>& regions, std::uint32_t index) {
  const auto at =
      std::lower_bound(regions.begin(), regions.end(), index,
                       [](const wire::CardRegion& region, std::uint32_t wanted) { return region.index < wanted; });
  return at != regions.end() && at->index == index ? &*at : nullptr;
}

bool is_removed(const wire::Card& card, const wire::CardRegion& region) {
  return std::any_of(
      std::lower_bound(card.removed.begin(), card.removed.end(), region.index,
                       [](const wire::CardRemoval& removal, std::uint32_t wanted) { return removal.index < wanted; }),
      card.removed.end(), [&](const wire::CardRemoval& removal) {
        return removal.index == region.index && removal.generation == region.generation;
      });
}

}  // namespace

void CardStore::take_all(wire::Card&& card) {
  revision_ = card.revision;
  complete_ = true;
  backends_ = std::move(card.backends);
  regions_ = std::move(card.regions);
  extras_ = std::move(card.extras);
  texts_.emplace_back(std::move(card.text));
}

void CardStore::add_one(const wire::CardRegion& region, const std::vector<wire::CardExtra>& extras) {
  wire::CardRegion copy = region;
  copy.extra_first = static_cast<std::uint32_t>(extras_.size());
  for (std::uint32_t i = 0; i < region.extra_count; ++i) extras_.push_back(extras[region.extra_first + i]);
  regions_.push_back(copy);
}

Result<std::shared_ptr<CardStore>> CardStore::merge(const std::shared_ptr<CardStore>& before, wire::Card card) {
  auto store = std::make_shared<CardStore>();
  if (card.kind == wire::CardKind::kFull) {
    if (before && before->complete_ && before->revision_ > card.revision) return before;
    store->take_all(std::move(card));
    return store;
  }
  if (card.kind == wire::CardKind::kDelta) {
    if (!before || !before->complete_ || before->revision_ < card.base_revision) {
      return Status(Code::kNotFound, "the delta card of " + card.name + " builds on revision " +
                                         std::to_string(card.base_revision) + ", which is not known here")
          .with_advice("load the full card first");
    }
    if (before->revision_ >= card.revision) return before;
  }
  const bool is_part_of_whole = card.kind == wire::CardKind::kPartial && before && before->complete_;
  if (is_part_of_whole && before->revision_ >= card.revision) return before;
  const std::shared_ptr<CardStore> none = std::make_shared<CardStore>();
  const CardStore& old = before ? *before : *none;
  // What else changed until a partial card's revision is still to come.
  store->revision_ = is_part_of_whole ? old.revision_ : std::max(old.revision_, card.revision);
  store->complete_ = old.complete_;
  store->backends_ = card.backends;
  store->texts_ = old.texts_;
  store->regions_.reserve(old.regions_.size() + card.regions.size());
  auto fresh = card.regions.begin();
  for (const wire::CardRegion& region : old.regions_) {
    for (; fresh != card.regions.end() && fresh->index < region.index; ++fresh) store->add_one(*fresh, card.extras);
    if (find_in(card.regions, region.index) == nullptr && !is_removed(card, region)) {
      store->add_one(region, old.extras_);
    }
  }
  for (; fresh != card.regions.end(); ++fresh) store->add_one(*fresh, card.extras);
  store->texts_.emplace_back(std::move(card.text));
  if (store->texts_.size() > kTextsMax) store->gather_texts();
  return store;
}

void CardStore::gather_texts() {
  std::size_t size = 0;
  for (const wire::CardRegion& region : regions_) size += region.name.size();
  for (const wire::CardExtra& extra : extras_) size += extra.bytes.size();
  const std::shared_ptr<char[]> text(new char[size]);
  char* end = text.get();
  const auto move_in = [&end](std::string_view& view) {
    char* const begin = end;
    end = std::ranges::copy(view, end).out;
    view = {begin, end};
  };
  for (wire::CardRegion& region : regions_) move_in(region.name);
  for (wire::CardExtra& extra : extras_) move_in(extra.bytes);
  texts_.assign(1, text);
}

const std::string* CardStore::address_of(std::string_view backend) const {
  for (const wire::CardBackend& entry : backends_) {
    if (entry.name == backend) return &entry.address;
  }
  return nullptr;
}

const wire::CardRegion* CardStore::find(std::uint32_t index) const { return find_in(regions_, index); }

const wire::CardRegion* CardStore::find_name(std::string_view name) {
  if (!names_built_) {
    for (std::uint32_t i = 0; i < regions_.size(); ++i) {
      if (!regions_[i].name.empty()) names_.emplace(regions_[i].name, i);
    }
    names_built_ = true;
  }
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : &regions_[found->second];
}

std::string_view CardStore::extra(const wire::CardRegion& region, std::string_view backend) const {
  for (std::uint32_t i = 0; i < region.extra_count; ++i) {
    const wire::CardExtra& extra = extras_[region.extra_first + i];
    if (extra.backend < backends_.size() && backends_[extra.backend].name == backend) return extra.bytes;
  }
  return {};
}

}  // namespace hawser::agent
