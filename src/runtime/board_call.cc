#include "runtime/board_call.h"

#include <algorithm>
#include <utility>

#include "base/copy.h"
#include "base/planted.h"

namespace hawser::runtime {

BoardCall::BoardCall(Board& board, const schedule::Call& call, Buffers buffers, std::uint64_t turn,
                     std::uint64_t number, std::uint64_t digest)
    : BoardPhase(board),
      call_(call),
      buffers_(std::move(buffers)),
      number_(number),
      digest_(digest),
      written_(board, turn, number, digest) {}

std::span<const std::byte> BoardCall::own_bytes() const {
  const std::uint64_t bytes = schedule::bytes_on_board(call_, call_.rank);
  if (bytes == 0) return {};
  std::uint64_t at = 0;  // Of the input in the output.
  if (call_.operation == schedule::Operation::kAllGather) {
    for (std::uint32_t rank = 0; rank < call_.rank; ++rank) at += call_.counts[rank] * call_.element_bytes;
  }
  const bool is_output = call_.operation == schedule::Operation::kBroadcast || call_.has_input_in_output;
  return {is_output ? buffers_.output + at : buffers_.input, static_cast<std::size_t>(bytes)};
}

BoardPhase::Step BoardCall::go_on() {
  if (!has_written_) {
    if (!board_.is_free(turn())) return Step::kWaits;
    board_.write(turn(), {.number = number_, .digest = digest_, .bytes = own_bytes()});
    has_written_ = true;
    return Step::kMoved;
  }
  switch (written_.look([&](std::uint32_t rank) { return schedule::bytes_on_board(call_, rank); })) {
    case BoardTurn::Sight::kWaits:
      return Step::kWaits;
    case BoardTurn::Sight::kDiffers:
      return Step::kDiffers;
    case BoardTurn::Sight::kBad:
      return Step::kBad;
    case BoardTurn::Sight::kAll:
      break;
  }
  take_result();
  return written_.is_still_there() ? Step::kOver : Step::kWaits;
}

void BoardCall::combine(std::uint64_t at, std::uint64_t count) {
  const std::uint64_t skipped = at * call_.element_bytes;
  const auto place = [&](std::uint32_t rank) { return written_.written()[rank].data() + skipped; };
  buffers_.combine(buffers_.output, place(0), place(1), count);
  for (std::uint32_t rank = 2; rank < call_.size; ++rank) {
    buffers_.combine(buffers_.output, buffers_.output, place(rank), count);
  }
}

/// Of the ranks before `end`.
void BoardCall::combine_first(std::uint32_t end) {
  const auto all = written_.written();
  if (end == 1) return static_cast<void>(base::copy_cached(buffers_.output, all[0].data(), all[0].size()));
  buffers_.combine(buffers_.output, all[0].data(), all[1].data(), call_.count);
  for (std::uint32_t rank = 2; rank < end; ++rank) {
    buffers_.combine(buffers_.output, buffers_.output, all[rank].data(), call_.count);
  }
}

void BoardCall::take_result() {
  const std::span<const std::span<const std::byte>> all = written_.written();
  const bool takes_own = base::planted(base::Planted::kScanTakesOwn);
  switch (call_.operation) {
    case schedule::Operation::kBroadcast:
      if (call_.rank != call_.root && call_.count > 0) {
        base::copy_cached(buffers_.output, all[call_.root].data(), all[call_.root].size());
      }
      break;
    case schedule::Operation::kReduce:
      if (call_.rank == call_.root && call_.count > 0) combine(0, call_.count);
      break;
    case schedule::Operation::kAllReduce:
      if (call_.count > 0) combine(0, call_.count);
      break;
    case schedule::Operation::kAllGather: {
      std::byte* to = buffers_.output;
      for (const std::span<const std::byte> each : all) {
        if (!each.empty()) base::copy_cached(to, each.data(), each.size());
        if (!each.empty()) to += each.size();
      }
      break;
    }
    case schedule::Operation::kReduceScatter: {
      std::uint64_t at = 0;
      for (std::uint32_t rank = 0; rank < call_.rank; ++rank) at += call_.counts[rank];
      if (call_.counts[call_.rank] > 0) combine(at, call_.counts[call_.rank]);
      break;
    }
    case schedule::Operation::kScan:
      if (call_.count > 0) combine_first(call_.rank + 1);
      break;
    case schedule::Operation::kExclusiveScan:  // The first one keeps what it has.
      if (call_.count > 0) combine_first(std::max(call_.rank, 1U) + (takes_own && call_.rank > 0 ? 1 : 0));
      break;
    case schedule::Operation::kGather:
      if (call_.rank == call_.root) take_blocks(buffers_.input);
      break;
    case schedule::Operation::kScatter:
      take_own_block();
      break;
    default:
      break;
  }
}

/// At a root, whose own block is in `own`.
void BoardCall::take_blocks(const std::byte* own) {
  std::byte* to = buffers_.output;
  for (std::uint32_t rank = 0; rank < call_.size; ++rank) {
    const std::uint64_t bytes = call_.counts[rank] * call_.element_bytes;
    if (bytes == 0) continue;
    const std::byte* const from = rank == call_.rank ? own : written_.written()[rank].data();
    if (from != to) base::copy_cached(to, from, bytes);
    to += bytes;
  }
}

/// Of the root's blocks.
void BoardCall::take_own_block() {
  const std::uint64_t bytes = call_.counts[call_.rank] * call_.element_bytes;
  if (bytes == 0) return;
  std::uint64_t at = 0;
  for (std::uint32_t rank = 0; rank < call_.rank; ++rank) at += call_.counts[rank] * call_.element_bytes;
  const std::byte* const all = call_.rank == call_.root ? buffers_.input : written_.written()[call_.root].data();
  base::copy_cached(buffers_.output, all + at, bytes);
}

bool BoardCall::has_news() const { return has_written_ ? written_.has_news() : board_.is_free(turn()); }

bool BoardCall::is_awaited(std::uint32_t rank) const {
  if (rank == call_.rank) return false;
  return written_.awaits(rank) || (!has_written_ && !board_.has_freed(rank, turn()));
}

}  // namespace hawser::runtime
