#include "compat/remote.h"

#include <algorithm>
#include <optional>

#include "agent/inner_peers.h"
#include "base/format.h"
#include "base/inside.h"
#include "compat/refusal.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr std::size_t kEnteredMin = 64;  ///< Between two sweeps, at least.

}  // namespace

Result<RemoteCopy> copy_of(std::string_view call, const Blob& blob, const wire::Card& card) {
  RemoteCopy copy{
      .entries = blob.entries, .ids = {}, .revision = card.revision, .is_full = card.kind == wire::CardKind::kFull};
  copy.ids.reserve(blob.entries.size());
  std::size_t next = 0;  // Mostly they stand in the card's order.
  for (const BlobEntry& entry : blob.entries) {
    if (next >= card.regions.size() || card.regions[next].index != entry.region) {
      const auto found = std::ranges::lower_bound(card.regions, entry.region, {}, &wire::CardRegion::index);
      next = static_cast<std::size_t>(found - card.regions.begin());
    }
    const bool is_there = next < card.regions.size() && card.regions[next].index == entry.region &&
                          card.regions[next].size >= entry.desc.len;
    if (!is_there) {
      return refusal(NixlCode::kMismatch, call,
                     base::format("the card does not have what registration {} says", copy.ids.size()));
    }
    const wire::CardRegion& region = card.regions[next++];
    copy.ids.push_back({.index = region.index, .generation = region.generation, .key = region.key});
  }
  return copy;
}

const std::shared_ptr<const agent::RemoteRegion>* region_of(const RemoteSpot& spot, const Peer& peer) {
  const std::uint64_t gone = agent::inner::regions_gone(peer);
  if (spot.region && spot.looked == gone) return &spot.region;
  spot.region = agent::inner::find_remote(peer, spot.id);
  spot.looked = gone;
  return spot.region ? &spot.region : nullptr;
}

void Remote::enter(const RemoteCopy& copy, std::string_view label) {
  const bool is_main = label.empty();
  if (is_main) has_main = true;
  Brought* const brought = is_main ? nullptr : &labels[std::string(label)];
  const std::vector<bool> open = agent::inner::are_known(peer, copy.ids);
  for (std::size_t i = 0; i < copy.entries.size(); ++i) {
    const auto& [type, region, desc] = copy.entries[i];
    enter_one(copy.entries[i], copy.ids[i], open[i], copy.revision, is_main);
    if (brought != nullptr) brought->emplace(type, desc.dev, desc.addr, desc.len);
  }
  entered_ += copy.entries.size() + 1;
  const bool is_due = copy.is_full || entered_ > kEnteredMin + book.entries().size();
  if (is_due && swept_at_ != agent::inner::regions_gone(peer)) sweep();
}

void Remote::enter_one(const BlobEntry& entry, const agent::RegionId& id, bool is_known_open, std::uint64_t revision,
                       bool is_main) {
  const RemoteSpot fresh{.id = id, .told = revision, .stays = is_main, .region = nullptr};
  Book<RemoteSpot>::Entry* const known = book.find_exact(entry.type, entry.desc);
  if (known == nullptr) {
    if (!is_known_open && is_covered(entry, revision)) return;
    book.add(entry.type, entry.desc, {.len = entry.desc.len, .range = fresh, .backends = kAllBackends});
    return;
  }
  RemoteSpot& spot = known->range;
  const bool stays = spot.stays || is_main;
  if (spot.id == id) {
    spot.told = std::max(spot.told, revision);
  } else if (!is_open(spot) || (is_known_open && revision > spot.told)) {
    spot = fresh;
  }
  spot.stays = stays;
}

bool Remote::is_covered(const BlobEntry& entry, std::uint64_t revision) const {
  const auto covers = [&](const Book<RemoteSpot>::Entry& one) {
    return one.range.told > revision && is_open(one.range);
  };
  std::uint64_t offset = 0;
  return book.find_if(entry.type, entry.desc, &offset, covers) != nullptr;
}

void Remote::sweep() {
  entered_ = 0;
  swept_at_ = agent::inner::regions_gone(peer);
  std::vector<agent::RegionId> ids;
  ids.reserve(book.entries().size());
  for (const auto& [key, entry] : book.entries()) ids.push_back(entry.range.id);
  const std::vector<bool> open = agent::inner::are_known(peer, ids);
  std::size_t at = 0;
  book.erase_if([&](const Book<RemoteSpot>::Key& key, const Book<RemoteSpot>::Entry& entry) {
    if (open[at++]) return false;
    const auto& [type, dev, addr] = key;
    for (auto& [label, brought] : labels) brought.erase({type, dev, addr, entry.len});
    return true;
  });
}

void Remote::drop(std::string_view label) {
  const auto its = labels.find(label);
  if (its == labels.end()) return;
  const Brought brought = std::move(its->second);
  labels.erase(its);
  for (const auto& one : brought) drop_one(one);
}

/// Unless it came by another way, too.
void Remote::drop_one(const Brought::value_type& one) {
  const bool is_held =
      std::any_of(labels.begin(), labels.end(), [&](const auto& label) { return label.second.contains(one); });
  if (is_held) return;
  const auto& [type, dev, addr, len] = one;
  const Desc desc{.addr = addr, .len = len, .dev = dev};
  const Book<RemoteSpot>::Entry* const known = book.find_exact(type, desc);
  if (known == nullptr || known->range.stays) return;
  std::optional<Book<RemoteSpot>::Entry> out;
  book.take(type, desc, kAllBackends, &out);
}

}  // namespace compat
HAWSER_NAMESPACE_END
