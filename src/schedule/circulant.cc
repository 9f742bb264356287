#include "schedule/circulant.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hawser::schedule {
namespace {

/// Blocks `me.rank + from` to `me.rank + end`, on the circle: one run of them, or two.
template <typename Visit>
void for_each_run(const Members& me, std::uint32_t from, std::uint32_t end, Visit visit) {
  const std::uint64_t first = std::uint64_t{me.rank} + from, last = std::uint64_t{me.rank} + end;
  if (last <= me.size) return visit(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last));
  if (first >= me.size) {
    return visit(static_cast<std::uint32_t>(first - me.size), static_cast<std::uint32_t>(last - me.size));
  }
  visit(static_cast<std::uint32_t>(first), me.size);
  visit(0U, static_cast<std::uint32_t>(last - me.size));
}

/// The skips of the rounds: the number of ranks, halved and rounded up until it is 1.
std::vector<std::uint32_t> skips_of(std::uint32_t size) {
  std::vector<std::uint32_t> skips = {size};
  while (skips.back() > 1) skips.push_back((skips.back() + 1) / 2);
  return skips;
}

}  // namespace

void reduce_scatter_blocks(Schedule& schedule, const Members& me, const Blocks& blocks, Buffer buffer) {
  const std::vector<std::uint32_t> skips = skips_of(me.size);
  // What a round receives is at most what the first one does, whichever blocks these are.
  std::uint64_t most = 0;
  for (std::size_t i = 0; i + 1 < skips.size(); ++i) {
    std::uint64_t received = 0;
    for_each_run(me, 0, skips[i] - skips[i + 1],
                 [&](std::uint32_t first, std::uint32_t end) { received += blocks.slice(buffer, first, end).count; });
    most = std::max(most, received);
  }
  const std::uint64_t scratch = schedule.take_scratch(most);
  for (std::size_t i = 0; i + 1 < skips.size(); ++i) {
    const std::uint32_t skip = skips[i + 1], moved = skips[i] - skip;
    for_each_run(me, skip, skip + moved, [&](std::uint32_t first, std::uint32_t end) {
      schedule.send(me.after(skip), blocks.slice(buffer, first, end));
    });
    std::uint64_t at = scratch;
    for_each_run(me, 0, moved, [&](std::uint32_t first, std::uint32_t end) {
      const Slice own = blocks.slice(buffer, first, end);
      schedule.receive(me.before(skip), {Buffer::kScratch, at, own.count});
      at += own.count;
    });
    at = scratch;
    for_each_run(me, 0, moved, [&](std::uint32_t first, std::uint32_t end) {
      const Slice own = blocks.slice(buffer, first, end);
      schedule.combine({Buffer::kScratch, at, own.count}, own);
      at += own.count;
    });
    schedule.end_round();
  }
}

void all_gather_blocks(Schedule& schedule, const Members& me, const Blocks& blocks, Buffer buffer) {
  const std::vector<std::uint32_t> skips = skips_of(me.size);
  for (std::size_t i = skips.size() - 1; i > 0; --i) {
    const std::uint32_t skip = skips[i], moved = skips[i - 1] - skip;
    for_each_run(me, 0, moved, [&](std::uint32_t first, std::uint32_t end) {
      schedule.send(me.before(skip), blocks.slice(buffer, first, end));
    });
    for_each_run(me, skip, skip + moved, [&](std::uint32_t first, std::uint32_t end) {
      schedule.receive(me.after(skip), blocks.slice(buffer, first, end));
    });
    schedule.end_round();
  }
}

}  // namespace hawser::schedule
