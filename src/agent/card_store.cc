#include "agent/card_store.h"

#include <algorithm>

#include "base/planted.h"

namespace hawser::agent {
namespace {

constexpr std::size_t kWeightMin = 64;

bool is_same_region(const wire::CardRegion& a, const wire::CardRegion& b) {
  return a.index == b.index && a.generation == b.generation && a.key == b.key && a.size == b.size &&
         a.rights == b.rights && a.device == b.device && a.name == b.name && a.extra_count == b.extra_count;
}

bool is_same(std::span<const wire::CardExtra> a, std::span<const wire::CardExtra> b) {
  return std::ranges::equal(a, b, [](const wire::CardExtra& one, const wire::CardExtra& other) {
    return one.backend == other.backend && one.bytes == other.bytes;
  });
}

bool is_same(const std::vector<wire::CardBackend>& a, const std::vector<wire::CardBackend>& b) {
  return std::ranges::equal(a, b, [](const wire::CardBackend& one, const wire::CardBackend& other) {
    return one.name == other.name && one.address == other.address;
  });
}

bool are_named_alike(const std::vector<wire::CardBackend>& a, const std::vector<wire::CardBackend>& b) {
  return std::ranges::equal(a, b, {}, &wire::CardBackend::name, &wire::CardBackend::name);
}

std::span<const wire::CardExtra> extras_in(const std::vector<wire::CardExtra>& all, const wire::CardRegion& region) {
  return std::span(all).subspan(region.extra_first, region.extra_count);
}

}  // namespace

const std::shared_ptr<const CardStore::Backends>& CardStore::no_backends() {
  static const auto* const none = new std::shared_ptr(std::make_shared<const Backends>());  // Never destroyed.
  return *none;
}

const CardStore::Entries& CardStore::no_entries() {
  static const auto* const none = new Entries;  // Never destroyed.
  return *none;
}

Result<CardStore::Change> CardStore::take(wire::Card card) {
  const bool is_full = card.kind == wire::CardKind::kFull;
  if (card.kind == wire::CardKind::kDelta && (!complete_ || revision_ < card.base_revision)) {
    return Status(Code::kNotFound, "the delta card of " + card.name + " builds on revision " +
                                       std::to_string(card.base_revision) + ", which is not known here")
        .with_advice("load the full card first");
  }
  Change change;
  // All that it could tell is known: what it lists and is not known here was removed since.
  const bool is_older = complete_ && (is_full ? card.revision < revision_ : card.revision <= revision_);
  if (is_older && !base::planted(base::Planted::kOldCardRevives)) return change;
  if (is_full && complete_ && is_same_whole(card)) return change;
  take_addresses(card, &change);
  if (is_full) {
    take_full(std::move(card), &change);
  } else {
    take_some(std::move(card), &change);
  }
  if (weight_ > kWeightMin + count_) fold();
  if (change.any) ++changes_;
  return change;
}

void CardStore::take_addresses(const wire::Card& card, Change* change) {
  if (!backends_->empty() && card.revision < address_revision_) return;
  address_revision_ = card.revision;
  if (is_same(*backends_, card.backends)) return;
  backends_ = std::make_shared<const Backends>(card.backends);
  change->any = true;
}

/// Mostly all pieces have the same.
std::shared_ptr<const CardStore::Backends> CardStore::shared_names(Backends&& backends) {
  if (are_named_alike(backends, *backends_)) return backends_;
  if (!named_ || !are_named_alike(backends, *named_)) named_ = std::make_shared<const Backends>(std::move(backends));
  return named_;
}

std::shared_ptr<const CardStore::Piece> CardStore::piece_of(wire::Card&& card) {
  auto piece = std::make_shared<Piece>();
  if (!card.extras.empty()) piece->backends = shared_names(std::move(card.backends));
  piece->regions = std::move(card.regions);
  piece->extras = std::move(card.extras);
  piece->text = std::move(card.text);
  return piece;
}

bool CardStore::is_same_whole(const wire::Card& card) const {
  if (card.revision != revision_ || card.regions.size() != count_ || !changed().empty() || !base_) return false;
  return is_same(*backends_, card.backends) && std::ranges::equal(card.regions, base_->regions, is_same_region) &&
         is_same(card.extras, base_->extras);
}

void CardStore::take_full(wire::Card&& card, Change* change) {
  const std::uint64_t revision = card.revision;
  const std::shared_ptr<const Piece> piece = piece_of(std::move(card));
  std::map<std::uint32_t, Entry> newer;  // What partial cards told since.
  if (told_max_ > revision) {
    for_each([&](const wire::CardRegion& region) {
      Entry entry = locate(region.index);
      if (entry.told > revision) newer.emplace(region.index, std::move(entry));
    });
  }
  base_ = piece;
  base_told_.clear();
  base_revision_ = revision_ = revision;
  told_max_ = std::max(told_max_, revision);
  complete_ = true;
  over_.reset();
  weight_ = 0;
  count_ = piece->regions.size();
  names_.reset();
  for (auto& [index, entry] : newer) {
    const wire::CardRegion* const listed = region_of(locate_in_base(index));
    if (listed == nullptr || listed->generation <= region_of(entry)->generation) put(index, std::move(entry), change);
  }
  change->any = change->is_whole = true;
  change->gone.clear();
}

/// Whether the region, as a partial card or a delta has it, is other than what is known. Remembers when it was told.
bool CardStore::is_news(const wire::Card& card, const wire::CardRegion& region) {
  const Entry known = locate(region.index);
  const wire::CardRegion* const its = region_of(known);
  if (its == nullptr) return true;
  if (base::planted(base::Planted::kOldCardRevives)) return true;
  if (its->generation != region.generation) return its->generation < region.generation;
  if (card.revision <= known.told) return false;
  const bool is_equal = is_same_region(*its, region) &&
                        (region.extra_count == 0 || are_named_alike(card.backends, *known.piece->backends)) &&
                        is_same(extras_in(known.piece->extras, *its), extras_in(card.extras, region));
  if (!is_equal) return true;
  const auto [at, is_new] =
      changing().try_emplace(region.index, Entry{.piece = known.piece, .at = known.at, .told = 0});
  at->second.told = card.revision;
  if (is_new) ++weight_;
  return false;
}

void CardStore::take_some(wire::Card&& card, Change* change) {
  const std::uint64_t revision = card.revision;
  for (const wire::CardRemoval& removal : card.removed) {
    change->gone.emplace_back(removal.index, removal.generation);
    const wire::CardRegion* const its = find(removal.index);
    if (its != nullptr && its->generation == removal.generation) put(removal.index, {}, change);
  }
  if (card.kind == wire::CardKind::kDelta) {
    change->any = true;
    revision_ = revision;
  }
  told_max_ = std::max(told_max_, revision);
  std::vector<std::uint32_t> news;
  for (std::uint32_t at = 0; at < card.regions.size(); ++at) {
    if (is_news(card, card.regions[at])) news.push_back(at);
  }
  if (news.empty()) return;
  const std::shared_ptr<const Piece> piece = piece_of(std::move(card));
  weight_ += piece->regions.size();
  for (const std::uint32_t at : news) {
    put(piece->regions[at].index, {.piece = piece, .at = at, .told = revision}, change);
  }
}

/// Whatever was there is closed, or told anew.
void CardStore::put(std::uint32_t index, Entry entry, Change* change) {
  const Entry before = locate(index);
  const wire::CardRegion* const old = region_of(before);
  const wire::CardRegion* const fresh = region_of(entry);
  if (old != nullptr) {
    --count_;
    if (names_) unname(*old);
    if (fresh == nullptr || fresh->generation != old->generation) change->gone.emplace_back(index, old->generation);
  }
  if (fresh != nullptr) {
    ++count_;
    if (names_) name_it(*fresh);
  } else {
    ++weight_;
  }
  changing()[index] = std::move(entry);
  change->any = true;
}

CardStore::Entry CardStore::locate(std::uint32_t index) const {
  const auto over = changed().find(index);
  return over != changed().end() ? over->second : locate_in_base(index);
}

CardStore::Entry CardStore::locate_in_base(std::uint32_t index) const {
  const std::size_t place = place_in_base(index);
  if (!base_ || place == base_->regions.size()) return {};
  return {.piece = base_,
          .at = static_cast<std::uint32_t>(place),
          .told = base_told_.empty() ? base_revision_ : base_told_[place]};
}

std::size_t CardStore::place_in_base(std::uint32_t index) const {
  if (!base_) return 0;
  const std::vector<wire::CardRegion>& regions = base_->regions;
  const auto at = std::ranges::lower_bound(regions, index, {}, &wire::CardRegion::index);
  return at != regions.end() && at->index == index ? static_cast<std::size_t>(at - regions.begin()) : regions.size();
}

const wire::CardRegion* CardStore::find(std::uint32_t index) const {
  const auto over = changed().find(index);
  if (over != changed().end()) return region_of(over->second);
  const std::size_t place = place_in_base(index);
  return base_ && place < base_->regions.size() ? &base_->regions[place] : nullptr;
}

const std::string* CardStore::address_of(std::string_view backend) const {
  const auto found = std::ranges::find(*backends_, backend, &wire::CardBackend::name);
  return found == backends_->end() ? nullptr : &found->address;
}

void CardStore::name_it(const wire::CardRegion& region) {
  if (!region.name.empty()) names_->emplace(region.name, region.index);
}

void CardStore::unname(const wire::CardRegion& region) {
  const auto [first, end] = names_->equal_range(region.name);
  const auto its = std::find_if(first, end, [&](const auto& each) { return each.second == region.index; });
  if (its != end) names_->erase(its);
}

const wire::CardRegion* CardStore::find_name(std::string_view name) {
  if (!names_) {
    names_ = std::make_unique<NameIndex>();
    for_each([this](const wire::CardRegion& region) { name_it(region); });
  }
  Entry best;
  const auto [first, end] = names_->equal_range(name);
  for (auto each = first; each != end; ++each) {
    Entry entry = locate(each->second);
    const bool is_first =
        !best.piece || entry.told > best.told || (entry.told == best.told && each->second < region_of(best)->index);
    if (is_first) best = std::move(entry);
  }
  return region_of(best);
}

std::string_view CardStore::extra(const wire::CardRegion& region, std::string_view backend) const {
  if (region.extra_count == 0) return {};
  const Entry entry = locate(region.index);
  if (region_of(entry) != &region) return {};
  const Backends& backends = *entry.piece->backends;
  for (const wire::CardExtra& extra : extras_in(entry.piece->extras, region)) {
    if (extra.backend < backends.size() && backends[extra.backend].name == backend) return extra.bytes;
  }
  return {};
}

/// All in one list again, and nothing of what is gone.
void CardStore::fold() {
  auto piece = std::make_shared<Piece>();
  piece->backends = backends_;
  piece->regions.reserve(count_);
  std::vector<std::uint64_t> told;
  told.reserve(count_);
  for_each([&](const wire::CardRegion& region) {
    const Entry entry = locate(region.index);
    copy_into(*piece, entry);
    told.push_back(entry.told);
  });
  own_texts(*piece);
  base_ = std::move(piece);
  base_told_ = std::move(told);
  over_.reset();
  weight_ = 0;
  names_.reset();
}

/// Extras of a backend that the peer no longer has are left behind: nothing reaches it.
void CardStore::copy_into(Piece& piece, const Entry& entry) const {
  wire::CardRegion copy = *region_of(entry);
  const auto first = static_cast<std::uint32_t>(piece.extras.size());
  for (const wire::CardExtra& extra : extras_in(entry.piece->extras, copy)) {
    if (extra.backend >= entry.piece->backends->size()) continue;
    const std::string& name = (*entry.piece->backends)[extra.backend].name;
    const auto found = std::ranges::find(*piece.backends, name, &wire::CardBackend::name);
    if (found == piece.backends->end()) continue;
    piece.extras.push_back(
        {.backend = static_cast<std::uint32_t>(found - piece.backends->begin()), .bytes = extra.bytes});
  }
  copy.extra_first = first;
  copy.extra_count = static_cast<std::uint16_t>(piece.extras.size() - first);
  piece.regions.push_back(copy);
}

void CardStore::own_texts(Piece& piece) {
  std::size_t size = 0;
  for (const wire::CardRegion& region : piece.regions) size += region.name.size();
  for (const wire::CardExtra& extra : piece.extras) size += extra.bytes.size();
  piece.text = std::make_unique_for_overwrite<char[]>(size);
  char* end = piece.text.get();
  const auto move_in = [&end](std::string_view& view) {
    char* const begin = end;
    end = std::ranges::copy(view, end).out;
    view = {begin, end};
  };
  for (wire::CardRegion& region : piece.regions) move_in(region.name);
  for (wire::CardExtra& extra : piece.extras) move_in(extra.bytes);
}

}  // namespace hawser::agent
