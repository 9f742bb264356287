#include "plan/pair_rows.h"

#include <array>
#include <memory_resource>

#include "base/format.h"
#include "base/try.h"
#include "plan/merger.h"

namespace hawser::plan {
namespace {

constexpr std::uint32_t kNoRow = UINT32_MAX;

struct ListLookup {
  explicit ListLookup(const RowTable& table) : blocks(table.list().data()) {}
  const RowBlock& operator()(std::uint64_t index) const { return blocks[index]; }
  const RowBlock* const blocks;
};

struct RowLookup {
  explicit RowLookup(const RowTable& of) : table(of) {}
  RowBlock operator()(std::uint64_t index) {
    // Neighbours in an index array mostly lie in one row; only a change of row pays for the search.
    if (index < from || index >= end) find(index);
    return {row.offset + (index - from) * row.stride, row.size, row.region};
  }
  void find(std::uint64_t index) {
    const std::size_t number = table.find_row(index);
    row = table.rows()[number];
    from = table.first_of(number);
    end = from + row.count;
  }
  const RowTable& table;
  Row row;
  std::uint64_t from = 0, end = 0;
};

struct Pairs {
  const RowTable& local;
  const RowTable& remote;
  const std::int32_t* local_index;
  const std::int32_t* remote_index;
  std::size_t count;
};

/// Checks and adds up all pairs, and finds the regions in use and how many pairs each group has.
struct Survey {
  Survey(std::uint32_t local_regions, std::uint32_t remote_regions, std::pmr::memory_resource* room)
      : local_place(local_regions, kNoRow, room), remote_place(remote_regions, kNoRow, room), counts(room) {}

  std::pmr::vector<std::uint32_t> local_place, remote_place;  ///< By region; kNoRow: not in use.
  std::vector<std::uint32_t> locals, remotes;
  std::pmr::vector<std::size_t> counts;  ///< By group.
  std::uint64_t bytes = 0;
  std::size_t good = 0;  ///< Pairs; fewer than given when one is wrong.

  std::uint32_t group_of(std::uint32_t region) {
    std::uint32_t& place = remote_place[region];
    if (place == kNoRow) {
      place = static_cast<std::uint32_t>(remotes.size());
      remotes.push_back(region);
      counts.push_back(0);
    }
    return place;
  }
  void note_local(std::uint32_t region) {
    std::uint32_t& place = local_place[region];
    if (place != kNoRow) return;
    place = static_cast<std::uint32_t>(locals.size());
    locals.push_back(region);
  }

  /// Calls `use(from, to)` for each pair until one is wrong, or `use` answers false.
  template <typename Local, typename Remote, typename Use>
  void walk(Local local, Remote remote, const Pairs& pairs, Use use) {
    const std::uint64_t local_count = pairs.local.count(), remote_count = pairs.remote.count();
    std::uint32_t last_local = kNoRow;
    std::size_t i = 0;
    for (; i < pairs.count; ++i) {
      // A negative index is a huge one.
      const auto l = static_cast<std::uint32_t>(pairs.local_index[i]);
      const auto r = static_cast<std::uint32_t>(pairs.remote_index[i]);
      if (l >= local_count || r >= remote_count) [[unlikely]]
        break;
      const RowBlock from = local(l);
      const RowBlock to = remote(r);
      if (from.size != to.size) [[unlikely]]
        break;
      if (from.region != last_local) note_local(last_local = from.region);
      if (__builtin_add_overflow(bytes, from.size, &bytes) || !use(from, to)) [[unlikely]]
        break;
    }
    good = i;
  }

  /// The first of two looks.
  template <typename Local, typename Remote>
  void take(Local local, Remote remote, const Pairs& pairs) {
    std::uint32_t last = kNoRow, group = 0;
    walk(local, remote, pairs, [&](const RowBlock&, const RowBlock& to) {
      if (to.region != last) group = group_of(last = to.region);
      ++counts[group];
      return true;
    });
  }

  /// The only look, where all remote blocks lie in one region, as those of most requests do: a long list is not read
  /// twice. False: they lie in several, and what was done is of no use.
  template <typename Local, typename Remote>
  bool take_one_region(Local local, Remote remote, const Pairs& pairs, Merger& into) {
    std::uint32_t only = kNoRow;
    bool is_only = true;
    walk(local, remote, pairs, [&](const RowBlock& from, const RowBlock& to) {
      if (only == kNoRow) only = to.region;
      is_only = to.region == only;
      into.add(reinterpret_cast<std::byte*>(from.offset), to.offset, from.size);
      return is_only;
    });
    if (is_only) remotes.push_back(only);
    return is_only;
  }
};

template <typename Local, typename Remote>
void fill(Local local, Remote remote, const Pairs& pairs, const Survey& survey, std::pmr::vector<Merger>& mergers,
          PieceGroups& groups) {
  std::uint32_t last = kNoRow;
  Merger* into = nullptr;
  PieceGroup* group = nullptr;
  for (std::size_t i = 0; i < pairs.count; ++i) {
    const RowBlock from = local(static_cast<std::uint32_t>(pairs.local_index[i]));
    const RowBlock to = remote(static_cast<std::uint32_t>(pairs.remote_index[i]));
    if (to.region != last) {
      last = to.region;
      into = &mergers[survey.remote_place[last]];
      group = &groups[survey.remote_place[last]];
    }
    group->bytes += from.size;
    into->add(reinterpret_cast<std::byte*>(from.offset), to.offset, from.size);
  }
}

/// Calls `use` with the two look-ups that the tables want.
template <typename Use>
void with_lookups(const Pairs& pairs, Use use) {
  const auto with_local = [&](auto local) {
    if (pairs.remote.is_list()) {
      use(local, ListLookup(pairs.remote));
    } else {
      use(local, RowLookup(pairs.remote));
    }
  };
  if (pairs.local.is_list()) {
    with_local(ListLookup(pairs.local));
  } else {
    with_local(RowLookup(pairs.local));
  }
}

Status invalid_rows(std::string text, std::string_view advice) {
  return Status(Code::kInvalid, std::move(text)).with_advice(advice);
}

/// Gives each group the place where it would begin if nothing merged.
std::pmr::vector<Merger> open_groups(const Survey& survey, std::pmr::memory_resource* room, Pieces& result) {
  std::pmr::vector<Merger> mergers(room);
  mergers.reserve(survey.remotes.size());
  std::size_t at = 0;
  for (std::size_t g = 0; g < survey.remotes.size(); ++g) {
    result.groups.push_back({.region = static_cast<std::uint32_t>(g), .first = at, .count = 0, .bytes = 0});
    mergers.emplace_back(result.all.data() + at);
    at += survey.counts[g];
  }
  return mergers;
}

/// In two looks: groups are contiguous, so where one begins is known only when all pairs were seen.
void fill_by_region(const Pairs& pairs, const Survey& survey, std::pmr::memory_resource* room, Pieces& result) {
  std::pmr::vector<Merger> mergers = open_groups(survey, room, result);
  with_lookups(pairs, [&](auto ours, auto theirs) { fill(ours, theirs, pairs, survey, mergers, result.groups); });
  close_gaps(mergers, result);
}

void fill_one_region(const Merger& merger, const Survey& survey, Pieces& result) {
  result.groups.push_back({.region = 0, .first = 0, .count = merger.count(), .bytes = survey.bytes});
  result.all.finish(merger.count());
}

}  // namespace

Status wrong_pair(std::string_view call, const RowTable& local, std::span<const std::int32_t> local_index,
                  const RowTable& remote, std::span<const std::int32_t> remote_index, std::size_t at) {
  const auto outside = [&](std::string_view side, std::int32_t index, std::uint64_t count) {
    return invalid_rows(
        base::format("{}: {} index {} at position {} is not in a list of {}", call, side, index, at, count),
        "indices go from 0 to the number of descriptors less one");
  };
  const std::int32_t l = local_index[at], r = remote_index[at];
  if (static_cast<std::uint32_t>(l) >= local.count()) return outside("local", l, local.count());
  if (static_cast<std::uint32_t>(r) >= remote.count()) return outside("remote", r, remote.count());
  const std::uint64_t ours = local.at(static_cast<std::uint32_t>(l)).size;
  const std::uint64_t theirs = remote.at(static_cast<std::uint32_t>(r)).size;
  if (ours == theirs) {
    return invalid_rows(base::format("{}: the descriptors have 2^64 bytes or more in all", call),
                        "make several requests");
  }
  return invalid_rows(
      base::format("{}: the pair at position {} has {} local bytes (index {}) and {} remote bytes (index {})", call, at,
                   ours, l, theirs, r),
      "pair descriptors of equal length");
}

Result<RowPieces> pair_rows(std::string_view call, const RowTable& local, std::uint32_t local_regions,
                            std::span<const std::int32_t> local_index, const RowTable& remote,
                            std::uint32_t remote_regions, std::span<const std::int32_t> remote_index) {
  HAWSER_TRY(check_pair_counts(call, "indices", local_index.size(), remote_index.size()));
  const Pairs pairs{local, remote, local_index.data(), remote_index.data(), local_index.size()};
  if (local.count() == 0 || remote.count() == 0) return wrong_pair(call, local, local_index, remote, remote_index, 0);
  // What a small list needs on the way lies here, as allocating it would cost more than the list.
  std::array<std::byte, 512> small;
  std::pmr::monotonic_buffer_resource room(small.data(), small.size());
  RowPieces result;
  result.pieces.all = PieceArray(pairs.count);
  if (result.pieces.all.data() == nullptr) {
    return Status(Code::kFailed, base::format("{}: no memory for {} pieces", call, pairs.count))
        .with_advice("make smaller requests");
  }
  Survey survey(local_regions, remote_regions, &room);
  Merger merger(result.pieces.all.data());
  bool is_one_region = false;
  with_lookups(pairs, [&](auto ours, auto theirs) {
    is_one_region = survey.take_one_region(ours, theirs, pairs, merger);
    if (is_one_region) return;
    survey = Survey(local_regions, remote_regions, &room);
    survey.take(ours, theirs, pairs);
  });
  if (survey.good != pairs.count) return wrong_pair(call, local, local_index, remote, remote_index, survey.good);
  if (is_one_region) {
    fill_one_region(merger, survey, result.pieces);
  } else {
    fill_by_region(pairs, survey, &room, result.pieces);
  }
  result.pieces.bytes = survey.bytes;
  result.pieces.pair_count = pairs.count;
  result.locals = std::move(survey.locals);
  result.remotes = std::move(survey.remotes);
  return result;
}

}  // namespace hawser::plan
