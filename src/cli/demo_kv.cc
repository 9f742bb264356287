#include "cli/demo_kv.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>

#include "base/rng.h"
#include "base/try.h"

namespace hawser::cli {

std::vector<std::uint32_t> KvShape::indices(std::span<const std::uint32_t> table) const {
  std::vector<std::uint32_t> all;
  all.reserve(table.size() * planes);
  for (std::uint32_t plane = 0; plane < planes; ++plane) {
    for (const std::uint32_t block : table) all.push_back(index(plane, block));
  }
  return all;
}

Json to_json(const KvShape& shape) {
  return {
      {"layers", shape.layers}, {"planes", shape.planes}, {"blocks", shape.blocks}, {"block_bytes", shape.block_bytes}};
}

Result<KvShape> shape_from(const Json& json) {
  KvShape shape{json.value("layers", 0u), json.value("planes", 0u), json.value("blocks", 0u),
                json.value("block_bytes", std::uint64_t{0})};
  if (shape.layers == 0 || shape.region_bytes() == 0) {
    return Status(Code::kCorrupt, fmt::format("no shape of a KV cache: {}", json.dump()));
  }
  return shape;
}

std::string layer_name(std::uint32_t layer) { return fmt::format("kv.layer.{}", layer); }

Result<KvCache> KvCache::allocate(Agent& agent, const KvShape& shape, Rights rights) {
  KvCache cache(shape);
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    HAWSER_TRY_ASSIGN(Region region,
                      agent.allocate({.name = layer_name(layer), .size = shape.region_bytes(), .rights = rights}));
    cache.regions_.push_back(std::move(region));
  }
  return cache;
}

std::span<std::byte> KvCache::block(std::uint32_t layer, std::uint32_t plane, std::uint32_t block) const {
  const std::uint64_t offset = shape_.index(plane, block) * shape_.block_bytes;
  return regions_[layer].bytes().subspan(offset, shape_.block_bytes);
}

void KvCache::fill(std::span<const std::uint32_t> table, std::uint64_t seed) {
  base::Rng rng(seed);
  for (std::uint32_t layer = 0; layer < shape_.layers; ++layer) {
    for (std::uint32_t plane = 0; plane < shape_.planes; ++plane) {
      for (const std::uint32_t number : table) {
        const std::span<std::byte> bytes = block(layer, plane, number);
        for (std::size_t at = 0; at < bytes.size(); at += 8) {
          const std::uint64_t value = rng.u64();
          std::memcpy(bytes.data() + at, &value, std::min<std::size_t>(8, bytes.size() - at));
        }
      }
    }
  }
}

void KvCache::wipe(std::byte value) {
  for (const Region& region : regions_) {
    const auto bytes = region.bytes();
    std::memset(bytes.data(), static_cast<int>(value), bytes.size());
  }
}

std::vector<std::uint64_t> KvCache::block_sums(std::uint32_t layer, std::span<const std::uint32_t> table) const {
  std::vector<std::uint64_t> sums;
  sums.reserve(table.size() * shape_.planes);
  for (std::uint32_t plane = 0; plane < shape_.planes; ++plane) {
    for (const std::uint32_t number : table) {
      const auto bytes = block(layer, plane, number);
      sums.push_back(XXH3_64bits(bytes.data(), bytes.size()));
    }
  }
  return sums;
}

std::vector<std::uint64_t> KvCache::layer_sums(std::span<const std::uint32_t> table) const {
  std::vector<std::uint64_t> sums;
  for (std::uint32_t layer = 0; layer < shape_.layers; ++layer) {
    sums.push_back(fold_sums(block_sums(layer, table)));
  }
  return sums;
}

Status KvCache::close(Duration timeout) {
  Status first;
  for (Region& region : regions_) {
    if (Status status = region.close(timeout); !status.ok() && first.ok()) first = status;
  }
  return first;
}

std::uint64_t fold_sums(std::span<const std::uint64_t> sums) { return XXH3_64bits(sums.data(), sums.size_bytes()); }

}  // namespace hawser::cli
