#include "plan/pieces.h"

#include <optional>

#include "base/format.h"
#include "base/try.h"
#include "plan/merger.h"

namespace hawser::plan {

/// Finds blocks without asserting and with as few branches as the kind of table allows.
struct ShapeLookup {
  using Kind = TableShape::Kind;
  static Kind kind(const TableShape& shape) { return shape.kind_; }

  struct Strided {
    explicit Strided(const TableShape& shape) : range(shape.entries_.front()) {}
    Block operator()(std::uint64_t index) const { return {range.offset + index * range.stride, range.size}; }
    const StridedRange range;
  };
  struct List {
    explicit List(const TableShape& shape) : blocks(shape.list_.data()) {}
    Block operator()(std::uint64_t index) const { return blocks[index]; }
    const Block* const blocks;
  };
  struct Mixed {
    explicit Mixed(const TableShape& of) : shape(of) {}
    Block operator()(std::uint64_t index) {
      // Neighbours in an index array mostly lie in one entry; only a change of entry pays for the search.
      if (index < from || index >= end) find(index);
      return {range.offset + (index - from) * range.stride, range.size};
    }
    void find(std::uint64_t index) {
      const std::size_t entry = shape.find_entry(index);
      range = shape.entries_[entry];
      from = shape.first_[entry];
      end = from + range.count;
    }
    const TableShape& shape;
    StridedRange range;
    std::uint64_t from = 0, end = 0;
  };
};

namespace {

struct IndexPairs {
  const std::uint32_t* local;
  const std::uint32_t* remote;
  std::size_t count;
};

struct Filled {
  std::size_t pairs = 0;  ///< Good ones; fewer than given when one is wrong.
  std::size_t pieces = 0;
  std::uint64_t bytes = 0;
};

template <typename Local, typename Remote>
Filled fill(Local local, Remote remote, const TableShape& local_shape, const TableShape& remote_shape,
            const IndexPairs& pairs, Piece* out) {
  std::byte* const base = local_shape.base();
  const std::uint64_t local_count = local_shape.count(), remote_count = remote_shape.count();
  Merger merger(out);
  std::uint64_t bytes = 0;
  std::size_t i = 0;
  for (; i < pairs.count; ++i) {
    if (pairs.local[i] >= local_count || pairs.remote[i] >= remote_count) [[unlikely]]
      break;
    const Block from = local(pairs.local[i]);
    const Block to = remote(pairs.remote[i]);
    if (from.size != to.size) [[unlikely]]
      break;
    bytes += from.size;
    merger.add(base + from.offset, to.offset, from.size);
  }
  return {i, merger.count(), bytes};
}

template <typename Local>
Filled fill_from(Local local, const TableShape& local_shape, const TableShape& remote_shape, const IndexPairs& pairs,
                 Piece* out) {
  switch (ShapeLookup::kind(remote_shape)) {
    case ShapeLookup::Kind::kStrided:
      return fill(local, ShapeLookup::Strided(remote_shape), local_shape, remote_shape, pairs, out);
    case ShapeLookup::Kind::kList:
      return fill(local, ShapeLookup::List(remote_shape), local_shape, remote_shape, pairs, out);
    case ShapeLookup::Kind::kMixed:
      return fill(local, ShapeLookup::Mixed(remote_shape), local_shape, remote_shape, pairs, out);
  }
  return {};
}

Filled fill_tables(const TableShape& local, const TableShape& remote, const IndexPairs& pairs, Piece* out) {
  switch (ShapeLookup::kind(local)) {
    case ShapeLookup::Kind::kStrided:
      return fill_from(ShapeLookup::Strided(local), local, remote, pairs, out);
    case ShapeLookup::Kind::kList:
      return fill_from(ShapeLookup::List(local), local, remote, pairs, out);
    case ShapeLookup::Kind::kMixed:
      return fill_from(ShapeLookup::Mixed(local), local, remote, pairs, out);
  }
  return {};
}

Status invalid(std::string text, std::string_view advice) {
  return Status(Code::kInvalid, std::move(text)).with_advice(advice);
}

Status no_memory(std::string_view call, std::size_t pairs) {
  return Status(Code::kFailed, base::format("{}: no memory for {} pieces", call, pairs))
      .with_advice("make smaller plans");
}

Status too_many_bytes(std::string_view call) {
  return invalid(base::format("{}: the ranges have 2^64 bytes or more in all", call), "make several plans");
}

/// No block is larger than its region, so real memory never comes near.
bool may_overflow(const TableShape& local, const IndexPairs& pairs) {
  return local.region_size() > UINT64_MAX / pairs.count;
}

/// Why pair `at` was not taken.
Status wrong_pair(std::string_view call, const TableShape& local, const TableShape& remote, const IndexPairs& pairs,
                  std::size_t at) {
  const std::uint32_t l = pairs.local[at], r = pairs.remote[at];
  const auto outside = [&](std::string_view side, std::uint32_t index, std::uint64_t count) {
    return invalid(
        base::format("{}: {} index {} at position {} is outside the table of {} ranges", call, side, index, at, count),
        base::format("indices go from 0 to {}", count - 1));
  };
  if (l >= local.count()) return outside("local", l, local.count());
  if (r >= remote.count()) return outside("remote", r, remote.count());
  return invalid(
      base::format("{}: the pair at position {} has {} local bytes (index {}) and {} remote bytes (index {})", call, at,
                   local.at(l).size, l, remote.at(r).size, r),
      "pair ranges of equal size, for example tables made with the same block size");
}

}  // namespace

Status check_pair_counts(std::string_view call, std::string_view what, std::size_t local, std::size_t remote) {
  if (local != remote) {
    return invalid(base::format("{}: {} local {} and {} remote ones", call, local, what, remote),
                   "both lists are paired one to one: give as many on each side");
  }
  if (local == 0) return invalid(base::format("{}: the lists of {} are empty", call, what), "give at least one pair");
  if (local > kPairsMax) {
    return invalid(base::format("{}: {} pairs are more than {} in one plan", call, local, kPairsMax),
                   "make several plans");
  }
  return {};
}

Result<Pieces> pair_tables(std::string_view call, const TableShape& local, std::span<const std::uint32_t> local_index,
                           const TableShape& remote, std::span<const std::uint32_t> remote_index) {
  HAWSER_TRY(check_pair_counts(call, "indices", local_index.size(), remote_index.size()));
  const IndexPairs pairs{local_index.data(), remote_index.data(), local_index.size()};
  Pieces result;
  result.all = PieceArray(pairs.count);
  if (result.all.data() == nullptr) return no_memory(call, pairs.count);
  if (local.count() == 0 || remote.count() == 0) return wrong_pair(call, local, remote, pairs, 0);
  const Filled filled = fill_tables(local, remote, pairs, result.all.data());
  if (filled.pairs != pairs.count) return wrong_pair(call, local, remote, pairs, filled.pairs);
  if (may_overflow(local, pairs)) return too_many_bytes(call);
  result.all.finish(filled.pieces);
  result.groups.push_back({.region = 0, .first = 0, .count = filled.pieces, .bytes = filled.bytes});
  result.bytes = filled.bytes;
  result.pair_count = pairs.count;
  return result;
}

namespace {

Status check_part(std::string_view call, std::string_view side, std::size_t at, std::uint64_t offset,
                  std::uint64_t size, std::uint64_t region_size) {
  if (size == 0) {
    return invalid(base::format("{}: the {} range at position {} is empty", call, side, at), "leave empty ranges out");
  }
  if (backend::in_bounds(offset, size, region_size)) return {};
  return invalid(base::format("{}: the {} range at position {} (offset {}, size {}) leaves its region of {} bytes",
                              call, side, at, offset, size, region_size),
                 "offset + size must be at most the region's size");
}

Status check_pair(std::string_view call, const LocalPart& local, const RemotePart& remote, std::size_t at) {
  HAWSER_TRY(check_part(call, "local", at, local.offset, local.size, local.region_size));
  HAWSER_TRY(check_part(call, "remote", at, remote.offset, remote.size, remote.region_size));
  if (local.size == remote.size) return {};
  return invalid(
      base::format("{}: the pair at position {} has {} local and {} remote bytes", call, at, local.size, remote.size),
      "pair ranges of equal size");
}

/// Checks all pairs and counts those of each remote region; groups stand in order of first use.
struct Census {
  PieceGroups groups;
  std::vector<std::uint32_t> group_of;  ///< By region; UINT32_MAX: none yet.
  std::uint64_t bytes = 0;

  Status take(std::string_view call, std::span<const LocalPart> local, std::span<const RemotePart> remote) {
    for (std::size_t i = 0; i < local.size(); ++i) {
      HAWSER_TRY(check_pair(call, local[i], remote[i], i));
      std::uint32_t& group = group_of[remote[i].region];
      if (group == UINT32_MAX) {
        group = static_cast<std::uint32_t>(groups.size());
        groups.push_back({.region = remote[i].region, .first = 0, .count = 0, .bytes = 0});
      }
      ++groups[group].count;
      if (__builtin_add_overflow(bytes, local[i].size, &bytes)) {
        return too_many_bytes(call);
      }
      groups[group].bytes += local[i].size;
    }
    return {};
  }
};

void fill_groups(std::span<const LocalPart> local, std::span<const RemotePart> remote, const Census& census,
                 Pieces& result) {
  std::vector<Merger> mergers = mergers_of(result);
  for (std::size_t i = 0; i < local.size(); ++i) {
    mergers[census.group_of[remote[i].region]].add(local[i].base + local[i].offset, remote[i].offset, local[i].size);
  }
  close_gaps(mergers, result);
}

}  // namespace

Result<Pieces> pair_parts(std::string_view call, std::span<const LocalPart> local, std::span<const RemotePart> remote,
                          std::uint32_t region_count) {
  HAWSER_TRY(check_pair_counts(call, "ranges", local.size(), remote.size()));
  Census census;
  census.group_of.assign(region_count, UINT32_MAX);
  HAWSER_TRY(census.take(call, local, remote));
  Pieces result;
  result.all = PieceArray(local.size());
  if (result.all.data() == nullptr) return no_memory(call, local.size());
  result.groups = std::move(census.groups);
  result.bytes = census.bytes;
  result.pair_count = local.size();
  fill_groups(local, remote, census, result);
  return result;
}

}  // namespace hawser::plan
