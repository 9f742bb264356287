#include "compat/resolved.h"

#include <unordered_map>

#include "base/format.h"
#include "base/try.h"
#include "compat/refusal.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

/// Numbers regions in order of first use.
template <typename Region>
class Places {
 public:
  explicit Places(std::vector<std::shared_ptr<Region>>& regions) : regions_(regions) {}
  std::uint32_t of(const std::shared_ptr<Region>& region) {
    if (region.get() == last_) return place_;
    if (regions_.empty()) {  // Most lists are of one region and never need the map.
      first_ = last_ = region.get();
      regions_.push_back(region);
      return place_;
    }
    if (region.get() == first_) return last_ = first_, place_ = 0;
    const auto [at, fresh] = places_.try_emplace(region.get(), static_cast<std::uint32_t>(regions_.size()));
    if (fresh) regions_.push_back(region);
    last_ = region.get();
    return place_ = at->second;
  }

 private:
  std::vector<std::shared_ptr<Region>>& regions_;
  std::unordered_map<const void*, std::uint32_t> places_;
  const void* first_ = nullptr;
  const void* last_ = nullptr;
  std::uint32_t place_ = 0;
};

/// What stands before a block's offset in its row: local rows hold addresses.
std::uint64_t base_of(const agent::LocalRegion& region) { return reinterpret_cast<std::uintptr_t>(region.entry->base); }
std::uint64_t base_of(const agent::RemoteRegion&) { return 0; }

const std::shared_ptr<agent::LocalRegion>* region_of(const LocalSpot& spot, const std::optional<Peer>&) {
  return &spot.region;
}
const std::shared_ptr<const agent::RemoteRegion>* region_of(const RemoteSpot& spot, const std::optional<Peer>& peer) {
  return region_of(spot, *peer);
}

template <typename Range, typename Region>
class Resolver {
 public:
  Resolver(std::string_view call, const Book<Range>& book, MemType type, const std::optional<Peer>& peer,
           std::vector<std::shared_ptr<Region>>& regions, plan::RowTable& rows)
      : call_(call), book_(book), type_(type), cursor_(book, type), peer_(peer), places_(regions), rows_(rows) {}

  BackendMask backends() const { return backends_; }
  bool has_empty() const { return has_empty_; }
  bool is_synced() const { return is_synced_; }

  Status add(const Desc& desc, std::size_t number) {
    if (desc.len == 0) return add_empty();
    std::uint64_t offset = 0;
    const auto* const entry = find(desc, &offset);
    if (entry == nullptr) return refuse(desc, number);
    const auto* const region = region_of(entry->range, peer_);
    if (region == nullptr) return withdrawn(number);
    backends_ &= entry->backends;
    is_synced_ = is_synced_ || entry->range.is_synced;
    rows_.add(base_of(**region) + entry->range.offset + offset, desc.len, places_.of(*region));
    return {};
  }
  Status add(const StridedDesc& desc, std::size_t number) {
    std::uint64_t extent = 0, offset = 0;
    if (desc.count == 0 || desc.count > kBlocksMax || rows_.count() + desc.count > kBlocksMax || desc.len == 0 ||
        __builtin_mul_overflow(desc.count - 1, desc.stride, &extent) ||
        __builtin_add_overflow(extent, desc.len, &extent)) {
      return refusal(NixlCode::kInvalidParam, call_,
                     base::format("row {}: {} blocks of {} bytes, {} apart, are not from 1 to 2^31 in a list", number,
                                  desc.count, desc.len, desc.stride));
    }
    const auto* const entry = find({desc.addr, extent, desc.dev}, &offset);
    if (entry == nullptr) return add_one_by_one(desc, number);
    const auto* const region = region_of(entry->range, peer_);
    if (region == nullptr) return withdrawn(number);
    backends_ &= entry->backends;
    is_synced_ = is_synced_ || entry->range.is_synced;
    rows_.add(plan::Row{.offset = base_of(**region) + entry->range.offset + offset,
                        .size = desc.len,
                        .stride = desc.stride,
                        .count = desc.count,
                        .region = places_.of(*region)});
    return {};
  }

 private:
  /// The registration that it lies in: where several hold it, one that is open.
  const typename Book<Range>::Entry* find(const Desc& desc, std::uint64_t* offset) {
    const auto is_open = [this](const auto& entry) { return region_of(entry.range, peer_) != nullptr; };
    const auto* const first = cursor_.find(desc, offset);
    if (first == nullptr || is_open(*first)) return first;
    const std::uint64_t of_first = *offset;
    const auto* const other = book_.find_if(type_, desc, offset, is_open);
    if (other == nullptr) *offset = of_first;
    return other != nullptr ? other : first;
  }
  /// NIXL's clients list what is of no bytes, and it moves nothing. It keeps its place in the list.
  Status add_empty() {
    has_empty_ = true;
    rows_.add(0, 0, 0);
    return {};
  }
  /// The blocks lie in several registrations.
  Status add_one_by_one(const StridedDesc& desc, std::size_t number) {
    for (std::uint64_t i = 0; i < desc.count; ++i) {
      HAWSER_TRY(add(Desc{desc.addr + i * desc.stride, desc.len, desc.dev}, number));
    }
    return {};
  }
  Status withdrawn(std::size_t number) const {
    return refusal(NixlCode::kNotFound, call_,
                   base::format("descriptor {} lies in a registration that its agent has withdrawn", number))
        .with_advice("load its newest metadata");
  }
  Status refuse(const Desc& desc, std::size_t number) const {
    return refusal(NixlCode::kNotFound, call_,
                   base::format("descriptor {} (addr {:#x}, len {}, dev {}) does not lie in one registration", number,
                                desc.addr, desc.len, desc.dev))
        .with_advice("register the memory, and for a peer load its newest metadata");
  }

  const std::string_view call_;
  const Book<Range>& book_;
  const MemType type_;
  typename Book<Range>::Cursor cursor_;
  const std::optional<Peer>& peer_;
  Places<Region> places_;
  plan::RowTable& rows_;
  BackendMask backends_ = kAllBackends;
  bool has_empty_ = false;
  bool is_synced_ = false;
};

template <typename Range, typename Region, typename Row>
Status resolve(std::string_view call, const Book<Range>& book, std::span<const Row> list,
               std::vector<std::shared_ptr<Region>>& regions, ResolvedList& out) {
  Resolver<Range, Region> resolver(call, book, out.type, out.peer, regions, out.rows);
  out.rows.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) HAWSER_TRY(resolver.add(list[i], i));
  out.rows.finish();
  out.backends &= resolver.backends();
  out.has_empty = resolver.has_empty();
  out.is_synced = resolver.is_synced();
  return {};
}

/// The agent's own memory, seen from its other side.
Status mirror_regions(std::string_view call, ResolvedList& list) {
  for (const auto& local : list.locals) {
    Result<RemoteRange> remote = list.peer->region(local->entry->index);
    if (!remote) return refusal(NixlCode::kNotFound, call, "the agent's own region is gone", remote.error());
    list.remotes.push_back(std::move(remote->region));
  }
  return {};
}

}  // namespace

template <typename Row>
Status resolve_local(std::string_view call, const Book<LocalSpot>& book, std::span<const Row> list, ResolvedList& out) {
  return resolve(call, book, list, out.locals, out);
}

template <typename Row>
Status resolve_own(std::string_view call, const Book<LocalSpot>& book, std::span<const Row> list, ResolvedList& out) {
  // Rows are the same on both sides but for what stands before their offsets.
  HAWSER_TRY(resolve(call, book, list, out.locals, out));
  HAWSER_TRY(mirror_regions(call, out));
  // Those that lie nowhere name a region all the same, which may be none.
  if (!out.locals.empty()) {
    out.rows.rebase([&](std::uint32_t region) { return base_of(*out.locals[region]); });
  }
  out.locals.clear();
  return {};
}

template <typename Row>
Status resolve_remote(std::string_view call, const Book<RemoteSpot>& book, std::span<const Row> list,
                      ResolvedList& out) {
  return resolve(call, book, list, out.remotes, out);
}

template Status resolve_local(std::string_view, const Book<LocalSpot>&, std::span<const Desc>, ResolvedList&);
template Status resolve_local(std::string_view, const Book<LocalSpot>&, std::span<const StridedDesc>, ResolvedList&);
template Status resolve_own(std::string_view, const Book<LocalSpot>&, std::span<const Desc>, ResolvedList&);
template Status resolve_own(std::string_view, const Book<LocalSpot>&, std::span<const StridedDesc>, ResolvedList&);
template Status resolve_remote(std::string_view, const Book<RemoteSpot>&, std::span<const Desc>, ResolvedList&);
template Status resolve_remote(std::string_view, const Book<RemoteSpot>&, std::span<const StridedDesc>, ResolvedList&);

}  // namespace compat
HAWSER_NAMESPACE_END
