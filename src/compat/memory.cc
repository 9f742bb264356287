// Registered memory.

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "agent/inner.h"
#include "backend/address_space.h"
#include "base/format.h"
#include "base/inside.h"
#include "base/small_vector.h"
#include "base/try.h"
#include "compat/core.h"
#include "compat/file_descs.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr Duration kRegionCloseTimeout = std::chrono::seconds(2);
/// Regions that are closed together, while the agent's lane is held; what is made is booked while it is in a cache.
constexpr std::size_t kRegionsAtOnce = 64;
constexpr std::size_t kFewClosing = 2;  ///< Lists of so many take no memory of their own.

RegionOptions region_options(MemType type, const RegDesc& desc) {
  RegionOptions options{.bytes = {reinterpret_cast<std::byte*>(desc.addr), desc.len}};
  if (type == MemType::kVram) {
    options.device = {.kind = DeviceKind::kCuda, .ordinal = static_cast<std::uint32_t>(desc.dev)};
  }
  return options;
}

/// A file's reaches as far as it can then.
bool is_of_nothing(MemType type, const Desc& desc) { return desc.len == 0 && type != MemType::kFile; }

/// The descriptor as the book knows it.
Desc book_desc(MemType type, const Desc& desc) { return type == MemType::kFile ? file_range(desc) : desc; }

}  // namespace

/// What one call registers, until it is booked.
struct AgentCore::Making {
  std::string_view call;
  MemType type;
  /// By device number. Such a number stands for one file: else where a transfer goes would be a guess.
  std::map<std::uint64_t, FileId> files = {};
  std::vector<LocalSpot> spots = {};

  Status check_file(const RegDesc& desc, const std::optional<FileId>& file) const {
    const auto known = files.find(desc.dev);
    if (known == files.end() || file == known->second) return {};
    return refusal(NixlCode::kInvalidParam, call, base::format("another file is registered as device {}", desc.dev))
        .with_advice("deregister all of that one first, or give each path a device number of its own");
  }
};

Result<Region> AgentCore::add_file(const RegDesc& desc, Making* making) {
  HAWSER_TRY_ASSIGN(const FileOptions options, file_options(making->call, desc));
  HAWSER_TRY(making->check_file(desc, named_file(desc)));  // Before one is made.
  HAWSER_TRY_ASSIGN(Region region, agent_->add_file(options));
  const FileId file = id_of(*core_of(region)->entry->file);
  HAWSER_TRY(making->check_file(desc, file));
  making->files.emplace(desc.dev, file);
  return region;
}

Status AgentCore::add_regions(std::span<const RegDesc> list, Making* making, std::vector<Region>* made,
                              std::size_t* wrong) {
  if (making->type == MemType::kFile) {
    for (const RegDesc& desc : list) {
      *wrong = made->size();
      HAWSER_TRY_ASSIGN(Region region, add_file(desc, making));
      made->push_back(std::move(region));
    }
    return {};
  }
  std::vector<RegionOptions> wanted;
  wanted.reserve(list.size());
  for (const RegDesc& desc : list) {
    if (desc.len != 0) wanted.push_back(region_options(making->type, desc));
  }
  std::vector<std::shared_ptr<agent::LocalRegion>> regions;
  const Status status = agent::inner::add_regions(*agent_, wanted, &regions, wrong);
  for (auto& region : regions) made->emplace_back(std::move(region));
  for (std::size_t at = 0; at < list.size() && at <= *wrong; ++at) *wrong += list[at].len == 0 ? 1 : 0;
  return status;
}

Status AgentCore::make_spots(const RegDescList& list, Making* making) {
  making->spots.reserve(list.size());
  std::vector<Region> made;
  const backend::AreaSurvey survey(backend::AreaDetail::kFlags);  // One look at the process, where regions are adopted.
  for (auto rest = list.span(); !rest.empty(); rest = rest.subspan(std::min(kRegionsAtOnce, rest.size()))) {
    const auto some = rest.first(std::min(kRegionsAtOnce, rest.size()));
    made.clear();
    std::size_t wrong = 0;
    const Status status = add_regions(some, making, &made, &wrong);
    if (!status.ok()) {
      const bool is_wrong = code_of(status) == NixlCode::kInvalidParam && list.type() == MemType::kFile;
      return refusal(is_wrong ? NixlCode::kInvalidParam : NixlCode::kBackend, making->call,
                     base::format("descriptor {}", making->spots.size() + wrong), status);
    }
    std::size_t next = 0;
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (is_of_nothing(list.type(), some[i])) {
        making->spots.emplace_back();
        continue;
      }
      Region& region = made[next++];
      const Desc known = book_desc(list.type(), some[i]);
      const std::uint64_t begin = list.type() == MemType::kFile ? known.addr : 0;
      const std::uint32_t index = region.index();
      LocalRange range = region.range(begin, known.len);
      making->spots.push_back({.owner = std::move(region),
                               .region = std::move(range.region),
                               .offset = begin,
                               .index = index,
                               .is_synced = list.type() == MemType::kFile && is_synced(some[i].meta)});
    }
  }
  return {};
}

Result<BackendMask> AgentCore::takers(std::string_view call, MemType type, const OptArgs* opt) const {
  if (backends_.empty()) return refusal(NixlCode::kNotFound, call, "the agent has no backend yet");
  HAWSER_TRY_ASSIGN(const BackendMask wanted, mask_of(call, opt));
  BackendMask mask = 0;
  for (std::size_t i = 0; i < backends_.size(); ++i) {
    if (takes(*backends_[i].plugin, type)) mask |= BackendMask{1} << i;
  }
  if ((mask & wanted) != 0) return mask & wanted;
  return refusal(NixlCode::kNotFound, call,
                 base::format("no backend of agent '{}' takes {} memory", name_, to_string(type)));
}

Status AgentCore::register_memory(const RegDescList& list, const OptArgs* opt) {
  constexpr std::string_view kCall = "register_mem";
  HAWSER_TRY(need_home(kCall));
  Making making{.call = kCall, .type = list.type()};
  // To open files and to adopt pages takes long, and other calls need not wait for it; registrations wait for each
  // other, so nothing comes between what is checked and what is booked.
  const std::lock_guard making_lock(making_mutex_);
  BackendMask mask = 0;
  {
    const std::lock_guard lock(mutex_);
    HAWSER_TRY_ASSIGN(mask, takers(kCall, list.type(), opt));
    for (const RegDesc& desc : list.type() == MemType::kFile ? list.span() : std::span<const RegDesc>()) {
      const auto* const entry = book_.of_device(MemType::kFile, desc.dev);
      if (entry != nullptr) making.files.emplace(desc.dev, id_of(*entry->range.region->entry->file));
    }
  }
  HAWSER_TRY(make_spots(list, &making));  // All or nothing: those that were made close themselves.
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Desc known = book_desc(list.type(), list.span()[i]);
    book_.add(list.type(), known, {.len = known.len, .range = std::move(making.spots[i]), .backends = mask});
    if (exporter_) exporter_->registered(known.len);
  }
  return {};
}

/// Each descriptor has a registration of its own in the book: else nothing is taken away.
Status AgentCore::check_registered(std::string_view call, const RegDescList& list, BackendMask mask) const {
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

Status AgentCore::deregister_memory(const RegDescList& list, const OptArgs* opt) {
  constexpr std::string_view kCall = "deregister_mem";
  HAWSER_TRY(need_home(kCall));
  HAWSER_TRY_ASSIGN(const BackendMask mask, backends_in(kCall, opt));
  {
    const std::lock_guard lock(mutex_);
    HAWSER_TRY(check_registered(kCall, list, mask));
  }
  Status answer, closed;
  const backend::AreaSurvey survey(backend::AreaDetail::kPlain);  // One look at the process, too, to give pages back.
  for (auto rest = list.span(); !rest.empty(); rest = rest.subspan(std::min(kRegionsAtOnce, rest.size()))) {
    const auto some = rest.first(std::min(kRegionsAtOnce, rest.size()));
    base::SmallVector<LocalSpot, kFewClosing> closing;
    closing.reserve(some.size());
    {
      const std::lock_guard lock(mutex_);
      for (const RegDesc& desc : some) {
        std::optional<Book<LocalSpot>::Entry> entry;
        if (!book_.take(list.type(), book_desc(list.type(), desc), mask, &entry)) {
          answer = refusal(NixlCode::kNotFound, kCall,
                           base::format("descriptor {} is not registered (any more)", &desc - list.span().data()));
        }
        if (exporter_ && entry) exporter_->deregistered(entry->len);
        if (entry) closing.push_back(std::move(entry->range));
      }
    }
    // The caller frees the memory next, so what still uses it must be over.
    const Status status = close_all(closing, kCall);
    if (closed.ok()) closed = status;
  }
  return answer.ok() ? closed : answer;
}

Status AgentCore::close_all(std::span<LocalSpot> closing, std::string_view call) {
  base::SmallVector<std::shared_ptr<agent::LocalRegion>, kFewClosing> regions;
  regions.reserve(closing.size());
  for (LocalSpot& spot : closing) {
    if (spot.region) regions.push_back(std::move(spot.region));
  }
  if (regions.empty()) return {};
  const Status status = agent::inner::close_regions(*agent_, regions, kRegionCloseTimeout);
  return status.ok() ? status : refusal(NixlCode::kBackend, call, "the memory is in use", status);
}

Result<QueryResponses> AgentCore::query_mem(const RegDescList& list, const OptArgs* opt) const {
  constexpr std::string_view kCall = "query_mem";
  HAWSER_TRY(backends_in(kCall, opt).status());
  if (opt == nullptr || opt->backends.size() != 1) {
    return refusal(NixlCode::kInvalidParam, kCall, "the options must name exactly one backend");
  }
  const std::string& name = opt->backends.front().name();
  if (list.type() != MemType::kFile || !takes(*find_plugin(name), MemType::kFile)) {
    return refusal(NixlCode::kNotSupported, kCall,
                   base::format("{} knows nothing of {} beyond its registration", name, to_string(list.type())));
  }
  QueryResponses answers;
  for (const RegDesc& desc : list) {
    Result<std::optional<Params>> answer = query_file_desc(desc);
    if (!answer) {
      return refusal(NixlCode::kBackend, kCall, base::format("descriptor {}", answers.size()), answer.error());
    }
    answers.push_back(*std::move(answer));
  }
  return answers;
}

}  // namespace compat
HAWSER_NAMESPACE_END
