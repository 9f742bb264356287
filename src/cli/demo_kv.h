#pragma once

// KvCache: one side's paged KV cache in regions of its agent, one region per layer, and the checksums of its blocks.
//
// Thread rule: one thread. Lifetime: dies before its agent.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <hawser/agent.h>

#include "cli/json_out.h"

namespace hawser::cli {

struct KvShape {
  std::uint32_t layers = 0;
  std::uint32_t planes = 0;
  std::uint32_t blocks = 0;  ///< In each plane.
  std::uint64_t block_bytes = 0;

  std::uint64_t region_bytes() const { return block_bytes * blocks * planes; }
  /// A block's number in its layer's table of blocks.
  std::uint32_t index(std::uint32_t plane, std::uint32_t block) const { return plane * blocks + block; }
  /// The numbers of `blocks` in all planes: what a plan of one layer is made of.
  std::vector<std::uint32_t> indices(std::span<const std::uint32_t> table) const;
};

Json to_json(const KvShape& shape);
/// kCorrupt when a field is missing.
Result<KvShape> shape_from(const Json& json);

/// "kv.layer.7".
std::string layer_name(std::uint32_t layer);

class KvCache {
 public:
  static Result<KvCache> allocate(Agent& agent, const KvShape& shape, Rights rights);

  const KvShape& shape() const { return shape_; }
  RangeTable table(std::uint32_t layer) const { return regions_[layer].table(shape_.block_bytes); }
  std::span<std::byte> block(std::uint32_t layer, std::uint32_t plane, std::uint32_t block) const;
  bool huge_pages() const { return !regions_.empty() && regions_[0].huge_pages(); }

  /// Numbers that depend on `seed` and on each block's place in the table, so that no two blocks are equal.
  void fill(std::span<const std::uint32_t> table, std::uint64_t seed);
  /// Every byte of the cache becomes `value`: what was there can't be taken for what is to come.
  void wipe(std::byte value);

  /// XXH3 of each block of one layer: plane by plane, in the order of the table.
  std::vector<std::uint64_t> block_sums(std::uint32_t layer, std::span<const std::uint32_t> table) const;
  /// For each layer one sum over its blocks' sums.
  std::vector<std::uint64_t> layer_sums(std::span<const std::uint32_t> table) const;

  /// Gives the regions back; kOk means that nobody touches them any more.
  Status close(Duration timeout);

 private:
  explicit KvCache(const KvShape& shape) : shape_(shape) {}
  KvShape shape_;
  std::vector<Region> regions_;
};

/// One sum over a layer's block sums.
std::uint64_t fold_sums(std::span<const std::uint64_t> sums);

}  // namespace hawser::cli
