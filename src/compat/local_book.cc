#include "compat/local_book.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/format.h"
#include "compat/refusal.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

Desc book_desc(MemType type, const Desc& desc) { return type == MemType::kFile ? file_range(desc) : desc; }

void LocalBook::add(MemType type, const Desc& desc, LocalSpot spot, BackendMask backends) {
  const Desc known = book_desc(type, desc);
  book_.add(type, known, {.len = known.len, .range = std::move(spot), .backends = backends});
}

std::map<std::uint64_t, FileId> LocalBook::files_of(const RegDescList& list) const {
  std::map<std::uint64_t, FileId> files;
  for (const RegDesc& desc : list) {
    const auto* const entry = book_.of_device(MemType::kFile, desc.dev);
    if (entry != nullptr) files.emplace(desc.dev, id_of(*entry->range.region->entry->file));
  }
  return files;
}

Status LocalBook::check(std::string_view call, const RegDescList& list, BackendMask mask) const {
  using Map = Book<LocalSpot>::Map;
  std::vector<std::pair<const Map::value_type*, std::size_t>> claims;  // The first that fits, and which descriptor.
  claims.reserve(list.size());
  const auto fits = [&](const Map::value_type& each, const Desc& desc) {
    return each.second.len == desc.len && (each.second.backends & mask) != 0;
  };
  const auto range_of = [&](const Desc& desc) {
    return book_.entries().equal_range(Book<LocalSpot>::Key{list.type(), desc.dev, desc.addr});
  };
  const auto missing = [&](std::size_t at) {
    return refusal(NixlCode::kNotFound, call, base::format("descriptor {} is not registered (any more)", at))
        .with_advice("nothing of the list was deregistered");
  };
  for (std::size_t at = 0; at < list.size(); ++at) {
    const Desc desc = book_desc(list.type(), list.span()[at]);
    const auto [begin, end] = range_of(desc);
    const auto first = std::find_if(begin, end, [&](const auto& each) { return fits(each, desc); });
    if (first == end) return missing(at);
    claims.emplace_back(&*first, at);
  }
  // A descriptor that is listed twice needs two registrations.
  std::sort(claims.begin(), claims.end());
  for (std::size_t i = 0, run = 1; i < claims.size(); i += run) {
    for (run = 1; i + run < claims.size() && claims[i + run].first == claims[i].first; ++run) continue;
    if (run == 1) continue;
    const std::size_t last = claims[i + run - 1].second;
    const Desc desc = book_desc(list.type(), list.span()[last]);
    const auto [begin, end] = range_of(desc);
    const auto count = std::count_if(begin, end, [&](const auto& each) { return fits(each, desc); });
    if (static_cast<std::size_t>(count) < run) return missing(last);
  }
  return {};
}

BlobEntries LocalBook::entries(BackendMask mask) const {
  BlobEntries entries;
  for (const auto& [key, entry] : book_.entries()) {
    const auto& [type, dev, addr] = key;
    if ((entry.backends & mask) == 0 || !entry.range.region) continue;
    entries.add({.type = type, .region = entry.range.index, .desc = {.addr = addr, .len = entry.len, .dev = dev}});
  }
  return entries;
}

Result<BlobEntries> LocalBook::entries(std::string_view call, const RegDescList& only, BackendMask mask,
                                       std::vector<std::uint32_t>* indices) const {
  BlobEntries entries;
  indices->reserve(only.size());
  Book<LocalSpot>::Cursor cursor(book_, only.type());
  std::size_t number = 0;
  for (const RegDesc& desc : only) {
    const std::size_t at = number++;
    std::uint64_t offset = 0;
    const auto* const entry = cursor.find(desc, &offset);
    if (entry == nullptr || (entry->backends & mask) == 0) {
      return refusal(NixlCode::kNotFound, call, base::format("descriptor {} is not registered", at));
    }
    if (!entry->range.region) continue;
    indices->push_back(entry->range.index);
    entries.add({.type = only.type(),
                 .region = indices->back(),
                 .desc = {.addr = desc.addr - offset, .len = entry->len, .dev = desc.dev}});
  }
  return entries;
}

}  // namespace compat
HAWSER_NAMESPACE_END
