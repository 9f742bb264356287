#include "worldsim/script.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/rng.h"

namespace hawser::worldsim {
namespace {

using What = schedule::Operation;

constexpr std::array kActs = {What::kBarrier,   What::kBroadcast, What::kReduce,        What::kAllReduce,
                              What::kAllReduce, What::kAllGather, What::kReduceScatter, What::kGather,
                              What::kScatter,   What::kAllToAll,  What::kScan,          What::kExclusiveScan};
constexpr std::array kTypes = {DataType::kInt32,  DataType::kInt64,   DataType::kUInt8,
                               DataType::kUInt16, DataType::kFloat32, DataType::kFloat64};
constexpr std::uint64_t kSmallMax = 40;
constexpr std::uint64_t kLargeMax = 24'000;  ///< Of 8 bytes: past what goes eagerly.

bool is_float(DataType type) { return type == DataType::kFloat32 || type == DataType::kFloat64; }

bool reduces(What what) {
  return what == What::kReduce || what == What::kAllReduce || what == What::kReduceScatter || what == What::kScan ||
         what == What::kExclusiveScan;
}

bool has_counts(What what) {
  return what == What::kAllGather || what == What::kReduceScatter || what == What::kGather || what == What::kScatter ||
         what == What::kAllToAll;
}

ReduceOp draw_op(base::Rng& rng, DataType type, What what) {
  constexpr std::array kOps = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax,
                               ReduceOp::kAnd, ReduceOp::kOr,   ReduceOp::kXor, ReduceOp::kAvg};
  const bool may_average =
      (type == DataType::kInt32 || type == DataType::kInt64) && what != What::kScan && what != What::kExclusiveScan;
  return kOps[rng.below(is_float(type) ? 4 : may_average ? kOps.size() : kOps.size() - 1)];
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t mixed = (a ^ (b + 0x9E3779B97F4A7C15ULL)) * 0xBF58476D1CE4E5B9ULL;
  mixed = (mixed ^ (mixed >> 29)) * 0x94D049BB133111EBULL;
  return mixed ^ (mixed >> 32);
}

/// Products of twelve ranks' values are exact in all types or wrap around as the type does.
std::int64_t value_of(const Act& act, std::uint32_t rank, std::uint64_t index) {
  const std::uint64_t drawn = mix(act.seed, mix(rank, index));
  return static_cast<std::int64_t>(act.op == ReduceOp::kProd ? 1 + drawn % 2 : drawn % 13);
}

std::int64_t combine(ReduceOp op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case ReduceOp::kProd:
      return a * b;
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kAnd:
      return a & b;
    case ReduceOp::kOr:
      return a | b;
    case ReduceOp::kXor:
      return a ^ b;
    default:
      return a + b;
  }
}

/// Of the ranks `first` to before `end`.
std::int64_t combined(const Act& act, std::uint32_t first, std::uint32_t end, std::uint64_t index) {
  std::int64_t value = value_of(act, first, index);
  for (std::uint32_t rank = first + 1; rank < end; ++rank) value = combine(*act.op, value, value_of(act, rank, index));
  return act.op == ReduceOp::kAvg ? value / static_cast<std::int64_t>(end - first) : value;
}

template <typename T>
void put(std::vector<std::byte>& bytes, std::int64_t value) {
  const T element = static_cast<T>(value);
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof(T));
  std::memcpy(bytes.data() + at, &element, sizeof(T));
}

void put_value(std::vector<std::byte>& bytes, DataType type, std::int64_t value) {
  switch (type) {
    case DataType::kInt32:
      return put<std::int32_t>(bytes, value);
    case DataType::kInt64:
      return put<std::int64_t>(bytes, value);
    case DataType::kInt16:
    case DataType::kUInt16:
      return put<std::uint16_t>(bytes, value);
    case DataType::kFloat32:
      return put<float>(bytes, value);
    case DataType::kFloat64:
      return put<double>(bytes, value);
    default:
      return put<std::uint8_t>(bytes, value);
  }
}

/// Another type, whose elements have the same size.
DataType same_size(DataType type) {
  switch (type) {
    case DataType::kInt32:
      return DataType::kFloat32;
    case DataType::kFloat32:
      return DataType::kInt32;
    case DataType::kInt64:
      return DataType::kFloat64;
    case DataType::kFloat64:
      return DataType::kInt64;
    case DataType::kUInt16:
      return DataType::kInt16;
    default:
      return DataType::kInt8;
  }
}

std::uint64_t sum_of(const std::vector<std::uint64_t>& counts, std::size_t before) {
  return std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(before), std::uint64_t{0});
}

/// What the element `index` of this rank's output is.
std::int64_t output_value(const Act& act, std::uint32_t rank, std::uint64_t index) {
  switch (act.what) {
    case What::kBroadcast:
      return value_of(act, act.root, index);
    case What::kReduce:
    case What::kAllReduce:
      return combined(act, 0, act.size, index);
    case What::kReduceScatter:
      return combined(act, 0, act.size, sum_of(act.counts, rank) + index);
    case What::kScatter:
      return value_of(act, act.root, sum_of(act.counts, rank) + index);
    case What::kScan:
      return combined(act, 0, rank + 1, index);
    case What::kExclusiveScan:
      return rank == 0 ? value_of(act, 0, index) : combined(act, 0, rank, index);
    default:
      return 0;
  }
}

/// Blocks of all ranks, one after another.
std::vector<std::byte> gathered(const Act& act, std::uint32_t rank) {
  std::vector<std::byte> bytes;
  for (std::uint32_t from = 0; from < act.size; ++from) {
    const bool exchanges = act.what == What::kAllToAll;
    std::uint64_t skipped = 0;
    for (std::uint32_t to = 0; exchanges && to < rank; ++to) skipped += exchange_count(act, from, to);
    const std::uint64_t count = exchanges ? exchange_count(act, from, rank) : act.counts[from];
    for (std::uint64_t i = 0; i < count; ++i) put_value(bytes, act.type, value_of(act, from, skipped + i));
  }
  return bytes;
}

}  // namespace

bool is_rooted(What what) {
  return what == What::kBroadcast || what == What::kReduce || what == What::kGather || what == What::kScatter;
}

Act act_of(std::uint64_t world_seed, std::uint64_t number, std::uint64_t last, std::uint32_t size) {
  Act act;
  act.size = size;
  if (number == 0 || number > last) return act;
  base::Rng rng(mix(world_seed, number));
  act.what = kActs[rng.below(kActs.size())];
  act.seed = rng.u64();
  if (act.what == What::kBarrier) return act;
  act.type = kTypes[rng.below(kTypes.size())];
  if (reduces(act.what)) act.op = draw_op(rng, act.type, act.what);
  act.root = is_rooted(act.what) ? static_cast<std::uint32_t>(rng.below(size)) : 0;
  act.reproducible = reduces(act.what) && rng.chance(0.2);
  const std::uint64_t most = rng.chance(0.06) ? kLargeMax : kSmallMax;
  if (!has_counts(act.what)) {
    act.count = rng.below(most + 1);
    return act;
  }
  for (std::uint32_t rank = 0; rank < size; ++rank) act.counts.push_back(rng.below(most / size + 2));
  if (act.what == What::kAllToAll && rng.chance(0.5)) act.counts.assign(size, act.counts[0]);
  return act;
}

Act misfit_of(const Act& act) {
  Act other = act;
  if (is_rooted(act.what) && act.size > 1) {
    other.root = (act.root + 1) % act.size;
  } else if (act.what == What::kBarrier) {
    other.what = What::kAllReduce;
    other.type = DataType::kInt32;
    other.op = ReduceOp::kSum;
    other.count = 3;
  } else if (act.op) {
    other.op = act.op == ReduceOp::kSum ? ReduceOp::kMax : ReduceOp::kSum;
  } else {
    other.type = same_size(act.type);
  }
  return other;
}

std::uint64_t exchange_count(const Act& act, std::uint32_t from, std::uint32_t to) {
  return (act.counts[from] + act.counts[to]) / 2;
}

bool is_even_exchange(const Act& act) {
  return act.what == What::kAllToAll &&
         std::ranges::adjacent_find(act.counts, std::not_equal_to<>()) == act.counts.end();
}

std::uint64_t input_count(const Act& act, std::uint32_t rank) {
  switch (act.what) {
    case What::kAllGather:
    case What::kGather:
      return act.counts[rank];
    case What::kReduceScatter:
      return sum_of(act.counts, act.size);
    case What::kScatter:
      return rank == act.root ? sum_of(act.counts, act.size) : 0;
    case What::kAllToAll: {
      std::uint64_t all = 0;
      for (std::uint32_t to = 0; to < act.size; ++to) all += exchange_count(act, rank, to);
      return all;
    }
    default:
      return act.count;
  }
}

std::uint64_t output_count(const Act& act, std::uint32_t rank) {
  switch (act.what) {
    case What::kReduce:
      return rank == act.root ? act.count : 0;
    case What::kAllGather:
      return sum_of(act.counts, act.size);
    case What::kGather:
      return rank == act.root ? sum_of(act.counts, act.size) : 0;
    case What::kReduceScatter:
    case What::kScatter:
      return act.counts[rank];
    case What::kAllToAll:
      return input_count(act, rank);  // The counts are symmetric.
    default:
      return act.count;
  }
}

std::vector<std::byte> input_of(const Act& act, std::uint32_t rank) {
  std::vector<std::byte> bytes;
  const std::uint64_t count = input_count(act, rank);
  for (std::uint64_t i = 0; i < count; ++i) put_value(bytes, act.type, value_of(act, rank, i));
  return bytes;
}

std::vector<std::byte> output_of(const Act& act, std::uint32_t rank) {
  const bool gathers = act.what == What::kAllGather || act.what == What::kGather || act.what == What::kAllToAll;
  if (output_count(act, rank) == 0) return {};
  if (gathers) return gathered(act, rank);
  std::vector<std::byte> bytes;
  for (std::uint64_t i = 0; i < output_count(act, rank); ++i) put_value(bytes, act.type, output_value(act, rank, i));
  return bytes;
}

std::string describe(const Act& act) {
  std::string text(schedule::to_string(act.what));
  if (act.what == What::kBarrier) return text;
  const std::uint64_t count = act.counts.empty() ? act.count : sum_of(act.counts, act.size);
  text += fmt::format(" of {} {}", count, to_string(act.type));
  if (act.op) text += fmt::format(" by {}", to_string(*act.op));
  if (is_rooted(act.what)) text += fmt::format(", root {}", act.root);
  return text;
}

}  // namespace hawser::worldsim
