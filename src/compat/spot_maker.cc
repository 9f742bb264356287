#include "compat/spot_maker.h"

#include <algorithm>

#include "agent/inner.h"
#include "base/format.h"
#include "base/inside.h"
#include "base/try.h"
#include "compat/refusal.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

RegionOptions region_options(MemType type, const RegDesc& desc) {
  RegionOptions options{.bytes = {reinterpret_cast<std::byte*>(desc.addr), desc.len}};
  if (type == MemType::kVram) {
    options.device = {.kind = DeviceKind::kCuda, .ordinal = static_cast<std::uint32_t>(desc.dev)};
  }
  return options;
}

/// A file's reaches as far as it can then.
bool is_of_nothing(MemType type, const Desc& desc) { return desc.len == 0 && type != MemType::kFile; }

}  // namespace

Status SpotMaker::check_file(const RegDesc& desc, const std::optional<FileId>& file) const {
  const auto known = files_.find(desc.dev);
  if (known == files_.end() || file == known->second) return {};
  return refusal(NixlCode::kInvalidParam, call_, base::format("another file is registered as device {}", desc.dev))
      .with_advice("deregister all of that one first, or give each path a device number of its own");
}

Result<Region> SpotMaker::add_file(const RegDesc& desc) {
  HAWSER_TRY_ASSIGN(const FileOptions options, file_options(call_, desc));
  HAWSER_TRY(check_file(desc, named_file(desc)));  // Before one is made.
  HAWSER_TRY_ASSIGN(Region region, agent_.add_file(options));
  const FileId file = id_of(*core_of(region)->entry->file);
  HAWSER_TRY(check_file(desc, file));
  files_.emplace(desc.dev, file);
  return region;
}

Status SpotMaker::add_regions(std::span<const RegDesc> some, std::vector<Region>* made, std::size_t* wrong) {
  if (type_ == MemType::kFile) {
    for (const RegDesc& desc : some) {
      *wrong = made->size();
      HAWSER_TRY_ASSIGN(Region region, add_file(desc));
      made->push_back(std::move(region));
    }
    return {};
  }
  std::vector<RegionOptions> wanted;
  wanted.reserve(some.size());
  for (const RegDesc& desc : some) {
    if (desc.len != 0) wanted.push_back(region_options(type_, desc));
  }
  std::vector<std::shared_ptr<agent::LocalRegion>> regions;
  const Status status = agent::inner::add_regions(agent_, wanted, &regions, wrong);
  for (auto& region : regions) made->emplace_back(std::move(region));
  for (std::size_t at = 0; at < some.size() && at <= *wrong; ++at) *wrong += some[at].len == 0 ? 1 : 0;
  return status;
}

LocalSpot SpotMaker::spot_of(const RegDesc& desc, Region region) const {
  const Desc known = book_desc(type_, desc);
  const std::uint64_t begin = type_ == MemType::kFile ? known.addr : 0;
  const std::uint32_t index = region.index();
  LocalRange range = region.range(begin, known.len);
  return {.owner = std::move(region),
          .region = std::move(range.region),
          .offset = begin,
          .index = index,
          .is_synced = type_ == MemType::kFile && is_synced(desc.meta)};
}

Status SpotMaker::make_some(std::span<const RegDesc> some) {
  std::vector<Region> made;
  std::size_t wrong = 0;
  const Status status = add_regions(some, &made, &wrong);
  if (!status.ok()) {
    const bool is_wrong = code_of(status) == NixlCode::kInvalidParam && type_ == MemType::kFile;
    return refusal(is_wrong ? NixlCode::kInvalidParam : NixlCode::kBackend, call_,
                   base::format("descriptor {}", spots_.size() + wrong), status);
  }
  std::size_t next = 0;
  for (const RegDesc& desc : some) {
    spots_.push_back(is_of_nothing(type_, desc) ? LocalSpot() : spot_of(desc, std::move(made[next++])));
  }
  return {};
}

Status SpotMaker::make(std::span<const RegDesc> list) {
  spots_.reserve(list.size());
  for (; !list.empty(); list = list.subspan(std::min(kRegionsAtOnce, list.size()))) {
    HAWSER_TRY(make_some(list.first(std::min(kRegionsAtOnce, list.size()))));
  }
  return {};
}

}  // namespace compat
HAWSER_NAMESPACE_END
