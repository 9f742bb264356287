// The door's memory types.

#include <hawser/memory.h>

#include <sodium.h>

#include <array>

#include "agent/core.h"
#include "agent/region.h"
#include "base/bytes.h"
#include "base/shown.h"
#include "base/try.h"
#include "wire/table.h"

namespace hawser::agent {
namespace {

RangeTable wrap(Result<plan::TableShape> shape, TableCore core) {
  if (!shape) return failed_table(shape.error());
  core.shape = std::move(*shape);
  return RangeTable(std::make_shared<const TableCore>(std::move(core)));
}

std::string table_name_of(const LocalRegion& region) { return "table of region '" + region.entry->name + "'"; }
std::string table_name_of(const RemoteRegion& region) {
  return "table of remote region '" + base::shown(region.name) + "'";
}

}  // namespace

std::uint64_t mark_of(const RegionId& id) {
  static_assert(crypto_shorthash_BYTES == sizeof(std::uint64_t) && crypto_shorthash_KEYBYTES == sizeof(id.key));
  std::array<std::byte, 2 * sizeof(std::uint32_t)> text;
  std::array<std::byte, crypto_shorthash_KEYBYTES> key;
  base::store_little_endian(text.data(), id.index);
  base::store_little_endian(text.data() + sizeof(id.index), id.generation);
  base::store_little_endian(key.data(), id.key.lo);
  base::store_little_endian(key.data() + sizeof(id.key.lo), id.key.hi);
  std::array<std::byte, crypto_shorthash_BYTES> mark;
  const auto bytes = [](auto& array) { return reinterpret_cast<unsigned char*>(array.data()); };
  crypto_shorthash(bytes(mark), bytes(text), text.size(), bytes(key));
  return base::load_little_endian<std::uint64_t>(mark.data());
}

RangeTable failed_table(Status status) {
  auto core = std::make_shared<TableCore>();
  core->status = std::move(status);
  return RangeTable(std::move(core));
}

RangeTable make_table(std::shared_ptr<LocalRegion> region, std::span<const StridedRange> ranges) {
  auto shape = plan::TableShape::make(table_name_of(*region), region->entry->base, region->entry->size, ranges);
  return wrap(std::move(shape), {.status = {}, .local = std::move(region), .remote = {}, .shape = {}});
}

RangeTable make_table(std::shared_ptr<const RemoteRegion> region, std::span<const StridedRange> ranges) {
  auto shape = plan::TableShape::make(table_name_of(*region), nullptr, region->size, ranges);
  return wrap(std::move(shape), {.status = {}, .local = {}, .remote = std::move(region), .shape = {}});
}

RangeTable make_block_table(std::shared_ptr<LocalRegion> region, std::uint64_t block_bytes) {
  auto shape =
      plan::TableShape::whole_blocks(table_name_of(*region), region->entry->base, region->entry->size, block_bytes);
  return wrap(std::move(shape), {.status = {}, .local = std::move(region), .remote = {}, .shape = {}});
}

RangeTable make_block_table(std::shared_ptr<const RemoteRegion> region, std::uint64_t block_bytes) {
  auto shape = plan::TableShape::whole_blocks(table_name_of(*region), nullptr, region->size, block_bytes);
  return wrap(std::move(shape), {.status = {}, .local = {}, .remote = std::move(region), .shape = {}});
}

}  // namespace hawser::agent

HAWSER_NAMESPACE_BEGIN

namespace {

Status without_region(std::string_view call) {
  return Status(Code::kInvalid, "Region::" + std::string(call) + ": this handle is empty");
}

}  // namespace

std::string to_string(Device device) {
  switch (device.kind) {
    case DeviceKind::kHost:
      return "host";
    case DeviceKind::kCuda:
      return "cuda:" + std::to_string(device.ordinal);
    case DeviceKind::kFile:
      return "file";
    case DeviceKind::kObject:
      return "object";
    case DeviceKind::kBlock:
      return "block";
  }
  return "device kind " + std::to_string(static_cast<unsigned>(device.kind));
}

RemoteRegionInfo region_info(const RemoteRange& range) {
  if (!range.region) return {};
  const agent::RemoteRegion& its = *range.region;
  return {.name = its.name, .index = its.index, .size = its.size, .rights = its.rights, .device = its.device};
}

Status RangeTable::status() const {
  return core_ ? core_->status : Status(Code::kInvalid, "an empty range table: it was never made");
}
std::uint64_t RangeTable::size() const { return core_ && core_->status.ok() ? core_->shape.count() : 0; }
bool RangeTable::is_remote() const { return core_ && core_->remote != nullptr; }

Result<StridedRange> RangeTable::at(std::uint64_t index) const {
  if (Status bad = status(); !bad.ok()) return bad;
  if (index >= size()) {
    return Status(Code::kInvalid, "RangeTable::at: index " + std::to_string(index) + " is not below the table's size " +
                                      std::to_string(size()));
  }
  const plan::Block block = core_->shape.at(index);
  return StridedRange{.offset = block.offset, .size = block.size, .stride = 0, .count = 1};
}

Result<std::string> RangeTable::encode() const {
  if (Status bad = status(); !bad.ok()) return bad;
  const auto id_of = [](const auto& its) {
    return agent::RegionId{.index = its.index, .generation = its.generation, .key = its.key};
  };
  const agent::RegionId id = core_->local ? id_of(*core_->local->entry) : id_of(*core_->remote);
  wire::TableShape shape{.region = id.index, .generation = id.generation, .ranges = {}, .mark = agent::mark_of(id)};
  shape.ranges.reserve(core_->shape.entry_count());
  for (std::size_t i = 0; i < core_->shape.entry_count(); ++i) shape.ranges.push_back(core_->shape.entry(i));
  return wire::encode(shape);
}

Region& Region::operator=(Region&& other) noexcept {
  if (this != &other) {
    Region gone(std::move(*this));
    core_ = std::move(other.core_);
  }
  return *this;
}

Region::~Region() {
  if (core_) core_->core->region_closer.drop(core_);
}

std::string_view Region::name() const { return core_ ? std::string_view(core_->entry->name) : std::string_view(); }
std::span<std::byte> Region::bytes() const {
  if (!core_ || core_->entry->base == nullptr) return {};  // A file's.
  return {core_->entry->base, static_cast<std::size_t>(core_->entry->size)};
}
std::uint64_t Region::size() const { return core_ ? core_->entry->size : 0; }
Rights Region::rights() const { return core_ ? core_->entry->rights : Rights::kNone; }
Device Region::device() const { return core_ ? core_->entry->device : Device(); }
std::uint32_t Region::index() const { return core_ ? core_->entry->index : 0; }
bool Region::listed() const { return core_ && core_->entry->listed; }
bool Region::huge_pages() const { return core_ && core_->huge_pages; }

Status Region::mappable() const {
  if (!core_) return Status(Code::kInvalid, "an empty region: it was never made");
  const backend::RegionEntry& entry = *core_->entry;
  if (entry.arena) return {};
  return entry.pages ? entry.pages->refusal() : Status(Code::kUnsupported, "a file is no memory that could be mapped");
}

LocalRange Region::range(std::uint64_t offset, std::uint64_t size) const {
  return {.region = core_, .offset = offset, .size = size};
}
RangeTable Region::table(std::uint64_t block_bytes) const {
  return core_ ? agent::make_block_table(core_, block_bytes) : agent::failed_table(without_region("table"));
}
RangeTable Region::table(std::span<const StridedRange> ranges) const {
  return core_ ? agent::make_table(core_, ranges) : agent::failed_table(without_region("table"));
}

Status Region::close(Duration timeout) {
  if (!core_) return without_region("close");
  if (core_->core->disowned()) return core_->core->usable("Region::close");
  HAWSER_TRY(core_->core->not_inline("Region::close"));
  return core_->core->region_closer.close(std::span(&core_, 1), timeout);
}

HAWSER_NAMESPACE_END
