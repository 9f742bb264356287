// The C ABI: regions, tables and signals.

#include "api/c/objects.h"

namespace hawser::api {

Result<LocalRange> local_range(const char* call, const hawser_local_range& range) {
  HAWSER_TRY_ASSIGN(const auto its, find<RegionObject>(call, range.region));
  return its->region.range(range.offset, range.size);
}

std::vector<StridedRange> ranges_of(const hawser_strided_range* ranges, std::size_t count) {
  std::vector<StridedRange> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    all[i] = {.offset = ranges[i].offset, .size = ranges[i].size, .stride = ranges[i].stride, .count = ranges[i].count};
  }
  return all;
}

Status give_table(const char* call, hawser_table* out, RangeTable table) {
  HAWSER_TRY(table.status());
  return give_handle(call, out, std::make_unique<TableObject>(std::move(table)));
}

Result<bool> flag_of(const char* call, std::uint32_t value, std::string_view name) {
  if (value <= 1) return value == 1;
  return invalid(call, std::string(name) + " = " + std::to_string(value) + " is neither 0 nor 1");
}

Result<Rights> rights_of(const char* call, std::uint32_t number) {
  if (number == HAWSER_RIGHTS_DEFAULT) return Rights::kReadWrite;
  if (number == HAWSER_RIGHTS_NONE) return Rights::kNone;
  if (number <= HAWSER_RIGHTS_READ_WRITE) return static_cast<Rights>(number);
  return invalid(call, "rights = " + std::to_string(number) + " is none of HAWSER_RIGHTS_*");
}

namespace {

/// As in version 1 of the C ABI.
constexpr std::size_t kRegionOptionsLeast = offsetof(hawser_region_options, unlisted);

Status add_region(const char* call, hawser_agent agent, const hawser_region_options* options, hawser_region* out) {
  HAWSER_TRY(not_null(call, options, "options"));
  HAWSER_TRY(not_null(call, out, "out"));
  HAWSER_TRY_ASSIGN(const hawser_region_options given,
                    options_of(call, "hawser_region_options", options, kRegionOptionsLeast));
  HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
  HAWSER_TRY(not_null(call, given.base, "base"));
  if (given.device_kind > UINT16_MAX) return invalid(call, "device_kind does not fit 16 bits");
  RegionOptions with{.name = std::string(text_of(given.name)),
                     .bytes = {static_cast<std::byte*>(given.base), given.bytes}};
  if (given.device_kind != 0) with.device.kind = static_cast<DeviceKind>(given.device_kind);
  with.device.ordinal = given.device_ordinal;
  HAWSER_TRY_ASSIGN(with.rights, rights_of(call, given.rights));
  HAWSER_TRY_ASSIGN(const bool unlisted, flag_of(call, given.unlisted, "unlisted"));
  with.listed = !unlisted;
  HAWSER_TRY_ASSIGN(Region region, its->agent.add_region(with));
  return give_handle(call, out, std::make_unique<RegionObject>(std::move(region)));
}

Status allocate(const char* call, hawser_agent agent, const hawser_region_options* options, hawser_region* out) {
  HAWSER_TRY(not_null(call, options, "options"));
  HAWSER_TRY(not_null(call, out, "out"));
  HAWSER_TRY_ASSIGN(const hawser_region_options given,
                    options_of(call, "hawser_region_options", options, kRegionOptionsLeast));
  HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
  if (given.base != nullptr) return invalid(call, "base is not null: hawser_agent_add_region takes your own memory");
  if (given.device_kind > HAWSER_DEVICE_HOST) return invalid(call, "device_kind is not the host");
  if (given.huge_pages > HAWSER_HUGE_PAGES_REQUIRE) {
    return invalid(call, "huge_pages = " + std::to_string(given.huge_pages) + " is none of HAWSER_HUGE_PAGES_*");
  }
  AllocateOptions with{.name = std::string(text_of(given.name)),
                       .size = given.bytes,
                       .huge_pages = static_cast<HugePages>(given.huge_pages)};
  HAWSER_TRY_ASSIGN(with.rights, rights_of(call, given.rights));
  HAWSER_TRY_ASSIGN(const bool unlisted, flag_of(call, given.unlisted, "unlisted"));
  with.listed = !unlisted;
  HAWSER_TRY_ASSIGN(Region region, its->agent.allocate(with));
  return give_handle(call, out, std::make_unique<RegionObject>(std::move(region)));
}

hawser_region_info info_of(const Region& region) {
  hawser_region_info info{.index = region.index(),
                          .rights = static_cast<std::uint32_t>(region.rights()),
                          .device_kind = static_cast<std::uint32_t>(region.device().kind),
                          .device_ordinal = region.device().ordinal,
                          .huge_pages = region.huge_pages() ? 1u : 0u,
                          .base = region.bytes().data(),
                          .bytes = region.size()};
  if (info.rights == 0) info.rights = HAWSER_RIGHTS_NONE;
  copy_name(info.name, region.name());
  return info;
}

}  // namespace
}  // namespace hawser::api

using namespace hawser;
using namespace hawser::api;

int hawser_agent_add_region(hawser_agent agent, const hawser_region_options* options, hawser_region* out) {
  return run(__func__, [&](const char* call) -> Status { return add_region(call, agent, options, out); });
}

int hawser_agent_allocate(hawser_agent agent, const hawser_region_options* options, hawser_region* out) {
  return run(__func__, [&](const char* call) -> Status { return allocate(call, agent, options, out); });
}

int hawser_region_info_get(hawser_region region, hawser_region_info* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<RegionObject>(call, region));
    return give(call, "hawser_region_info", out, info_of(its->region));
  });
}

int hawser_region_mappable(hawser_region region) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<RegionObject>(call, region));
    return its->region.mappable();
  });
}

int hawser_region_close(hawser_region region, int64_t timeout_ns) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<RegionObject>(call, region));
    return its->region.close(timeout_of(timeout_ns));
  });
}

int hawser_region_release(hawser_region region) { return release<RegionObject>(__func__, region); }

int hawser_read_signal(hawser_agent agent, const hawser_local_range* word, uint64_t* value) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, word, "word"));
    HAWSER_TRY(not_null(call, value, "value"));
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    HAWSER_TRY_ASSIGN(const LocalRange where, local_range(call, *word));
    HAWSER_TRY_ASSIGN(const std::uint64_t read, its->agent.read_signal(where));
    *value = read;
    return {};
  });
}

int hawser_wait_signal(hawser_agent agent, const hawser_local_range* word, uint64_t at_least, int64_t timeout_ns) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, word, "word"));
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    HAWSER_TRY_ASSIGN(const LocalRange where, local_range(call, *word));
    return its->agent.wait_signal(where, at_least, timeout_of(timeout_ns));
  });
}

int hawser_region_blocks(hawser_region region, uint64_t block_bytes, hawser_table* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY_ASSIGN(const auto its, find<RegionObject>(call, region));
    return give_table(call, out, its->region.table(block_bytes));
  });
}

int hawser_region_table(hawser_region region, const hawser_strided_range* ranges, size_t count, hawser_table* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY(not_null(call, ranges, count, "ranges"));
    HAWSER_TRY_ASSIGN(const auto its, find<RegionObject>(call, region));
    return give_table(call, out, its->region.table(ranges_of(ranges, count)));
  });
}

int hawser_peer_blocks(hawser_peer peer, const char* region, uint64_t block_bytes, hawser_table* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY(not_null(call, region, "region"));
    HAWSER_TRY_ASSIGN(const auto its, find<PeerObject>(call, peer));
    return give_table(call, out, its->peer.table(region, block_bytes));
  });
}

int hawser_peer_table(hawser_peer peer, const char* region, const hawser_strided_range* ranges, size_t count,
                      hawser_table* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY(not_null(call, region, "region"));
    HAWSER_TRY(not_null(call, ranges, count, "ranges"));
    HAWSER_TRY_ASSIGN(const auto its, find<PeerObject>(call, peer));
    return give_table(call, out, its->peer.table(region, ranges_of(ranges, count)));
  });
}

int hawser_table_count(hawser_table table, uint64_t* count) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, count, "count"));
    HAWSER_TRY_ASSIGN(const auto its, find<TableObject>(call, table));
    *count = its->table.size();
    return {};
  });
}

int hawser_table_at(hawser_table table, uint64_t index, hawser_strided_range* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY_ASSIGN(const auto its, find<TableObject>(call, table));
    HAWSER_TRY_ASSIGN(const StridedRange range, its->table.at(index));
    *out = {.offset = range.offset, .size = range.size, .stride = range.stride, .count = range.count};
    return {};
  });
}

int hawser_table_encode(hawser_table table, hawser_buffer* bytes) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<TableObject>(call, table));
    HAWSER_TRY_ASSIGN(const std::string encoded, its->table.encode());
    return give(call, bytes, encoded);
  });
}

int hawser_peer_import_table(hawser_peer peer, const void* bytes, size_t size, hawser_table* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY(not_null(call, bytes, size, "bytes"));
    HAWSER_TRY_ASSIGN(const auto its, find<PeerObject>(call, peer));
    return give_table(call, out, its->peer.import_table(bytes_of(bytes, size)));
  });
}

int hawser_table_release(hawser_table table) { return release<TableObject>(__func__, table); }
