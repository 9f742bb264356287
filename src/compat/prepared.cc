// Descriptors resolved to rows of regions.

#include "compat/prepared.h"

#include <unordered_map>

#include "agent/region.h"
#include "base/format.h"
#include "base/try.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

/// Blocks in one list: its rows may be strided, but a request's indices are 32 bits.
constexpr std::uint64_t kBlocksMax = std::uint64_t{1} << 31;
/// Room that is kept for lists to come: each so many blocks (6 MiB), so many of them.
constexpr std::size_t kRoomBlocksMax = std::size_t{1} << 18;
constexpr std::size_t kRoomsMax = 4;
constexpr std::size_t kRoomFrom = 64;  ///< Shorter lists are rows, and need none.

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
Status resolve(std::string_view call, const Book<Range>& book, MemType type, std::span<const Row> list,
               std::vector<std::shared_ptr<Region>>& regions, PreparedCore& out) {
  Resolver<Range, Region> resolver(call, book, type, out.peer, regions, out.rows);
  out.rows.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) HAWSER_TRY(resolver.add(list[i], i));
  out.rows.finish();
  out.backends &= resolver.backends();
  out.has_empty = resolver.has_empty();
  out.is_synced = resolver.is_synced();
  return {};
}

}  // namespace

// Room is never waited for: it is only spare, and in a forked child nobody may be left to unlock it.
std::vector<plan::RowBlock> AgentCore::take_room() {
  const std::unique_lock lock(rooms_mutex_, std::try_to_lock);
  if (!lock || rooms_.empty()) return {};
  std::vector<plan::RowBlock> room = std::move(rooms_.back());
  rooms_.pop_back();
  return room;
}

void AgentCore::keep_room(std::vector<plan::RowBlock> room) {
  if (room.capacity() == 0 || room.capacity() > kRoomBlocksMax) return;
  const std::unique_lock lock(rooms_mutex_, std::try_to_lock);
  if (lock && rooms_.size() < kRoomsMax) rooms_.push_back(std::move(room));
}

/// The agent's own memory, seen from its other side.
Status AgentCore::mirror_regions(std::string_view call, const Peer& self, PreparedCore& prepared) {
  for (const auto& local : prepared.locals) {
    Result<RemoteRange> remote = self.region(local->entry->index);
    if (!remote) return refusal(NixlCode::kNotFound, call, "the agent's own region is gone", remote.error());
    prepared.remotes.push_back(std::move(remote->region));
  }
  return {};
}

template <typename Row>
Status AgentCore::resolve_list(std::string_view call, std::string_view name, MemType type, std::span<const Row> list,
                               const OptArgs* opt, PreparedCore& prepared) {
  if (list.empty()) return refusal(NixlCode::kInvalidParam, call, "the list is empty");
  if (list.size() > kBlocksMax) return refusal(NixlCode::kInvalidParam, call, "the list has more than 2^31 entries");
  if (list.size() >= kRoomFrom) prepared.rows.reuse(take_room());
  HAWSER_TRY_ASSIGN(prepared.backends, mask_of(call, opt));
  prepared.type = type;
  if (!name.empty()) {
    prepared.peer = find_peer(name);
    if (!prepared.peer) {
      return refusal(NixlCode::kNotFound, call, base::format("no metadata of agent '{}' is loaded", name));
    }
  }
  if (!prepared.peer) {
    HAWSER_TRY(resolve(call, book_, type, list, prepared.locals, prepared));
  } else if (prepared.peer->is_self()) {
    // Rows are the same on both sides but for what stands before their offsets.
    HAWSER_TRY(resolve(call, book_, type, list, prepared.locals, prepared));
    HAWSER_TRY(mirror_regions(call, *prepared.peer, prepared));
    // Those that lie nowhere name a region all the same, which may be none.
    if (!prepared.locals.empty()) {
      prepared.rows.rebase([&](std::uint32_t region) { return base_of(*prepared.locals[region]); });
    }
    prepared.locals.clear();
  } else {
    HAWSER_TRY(resolve(call, remotes_.find(name)->second.book, type, list, prepared.remotes, prepared));
    prepared.backends &= remote_mask_.load(std::memory_order_acquire);
  }
  if (prepared.backends == 0) return refusal(NixlCode::kNotFound, call, "no backend has all of the list");
  return {};
}

template <typename Row>
Result<PreparedList> AgentCore::prepare_any(std::string_view call, std::string_view name, MemType type,
                                            std::span<const Row> list, const OptArgs* opt,
                                            const std::shared_ptr<AgentCore>& self) {
  HAWSER_TRY(need_home(call));
  auto prepared = std::make_shared<PreparedCore>(self);
  const std::lock_guard lock(mutex_);
  HAWSER_TRY(resolve_list(call, name, type, list, opt, *prepared));
  return PreparedList(std::move(prepared));
}

Status AgentCore::prepare_pair(std::string_view call, const XferDescList& local, std::string_view name,
                               const XferDescList& remote, const OptArgs* opt, PreparedPair& pair) {
  HAWSER_TRY(need_home(call));
  const std::lock_guard lock(mutex_);
  HAWSER_TRY(resolve_list(call, {}, local.type(), local.span(), opt, pair.local));
  HAWSER_TRY(resolve_list(call, name, remote.type(), remote.span(), opt, pair.remote));
  const BackendMask can = movers(local.type(), remote.type(), pair.remote.peer->is_self());
  if ((pair.local.backends & pair.remote.backends & can) != 0) return {};
  return refusal(NixlCode::kNotFound, call, "no backend moves between the memories of both sides");
}

Result<PreparedList> AgentCore::prepare(std::string_view call, std::string_view name, MemType type,
                                        std::span<const Desc> list, const OptArgs* opt,
                                        const std::shared_ptr<AgentCore>& self) {
  return prepare_any(call, name, type, list, opt, self);
}

Result<PreparedList> AgentCore::prepare(std::string_view call, std::string_view name, MemType type,
                                        std::span<const StridedDesc> rows, const OptArgs* opt,
                                        const std::shared_ptr<AgentCore>& self) {
  return prepare_any(call, name, type, rows, opt, self);
}

}  // namespace compat
HAWSER_NAMESPACE_END
