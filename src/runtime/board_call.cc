#include "runtime/board_call.h"

#include <cstring>
#include <span>
#include <utility>

#include "base/planted.h"

namespace hawser::runtime {

using Sight = Board::Sight;

BoardCall::BoardCall(Board& board, const schedule::Call& call, Buffers buffers, std::uint64_t turn,
                     std::uint64_t number, std::uint64_t digest)
    : board_(board),
      call_(call),
      buffers_(std::move(buffers)),
      turn_(turn),
      number_(number),
      digest_(digest),
      written_(board.seen(turn)) {}

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

BoardCall::Step BoardCall::go_on() {
  if (!has_written_) {
    if (!board_.is_free(turn_)) return Step::kWaits;
    board_.write(turn_, {.number = number_, .digest = digest_, .bytes = own_bytes()});
    has_written_ = true;
    return Step::kWrote;
  }
  while (seen_ < call_.size) {
    Board::Entry entry;
    const Sight sight = board_.look(seen_, turn_, &entry);
    if (sight == Sight::kBad) return Step::kBad;
    if (sight != Sight::kThere) return Step::kWaits;
    const bool is_read = !base::planted(base::Planted::kBoardDigestUnread);
    if (is_read && (entry.number != number_ || entry.digest != digest_)) return Step::kDiffers;
    if (entry.bytes.size() != schedule::bytes_on_board(call_, seen_)) return Step::kBad;
    written_[seen_++] = entry.bytes;
  }
  if (take_result()) return Step::kOver;
  return Step::kWaits;
}

void BoardCall::combine(std::uint64_t at, std::uint64_t count) {
  const std::uint64_t skipped = at * call_.element_bytes;
  const auto place = [&](std::uint32_t rank) { return written_[rank].data() + skipped; };
  buffers_.combine(buffers_.output, place(0), place(1), count);
  for (std::uint32_t rank = 2; rank < call_.size; ++rank) {
    buffers_.combine(buffers_.output, buffers_.output, place(rank), count);
  }
}

/// False: what was read does not count, since a board was out of sight before all of it had been read.
bool BoardCall::take_result() {
  switch (call_.operation) {
    case schedule::Operation::kBroadcast:
      if (call_.rank != call_.root && call_.count > 0) {
        std::memcpy(buffers_.output, written_[call_.root].data(), written_[call_.root].size());
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
      for (const std::span<const std::byte> each : written_) {
        if (!each.empty()) std::memcpy(to, each.data(), each.size());
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
    default:
      break;
  }
  for (std::uint32_t rank = 0; rank < call_.size; ++rank) {
    if (board_.is_still_there(rank, turn_)) continue;
    seen_ = rank;
    return false;
  }
  return true;
}

bool BoardCall::has_news() const {
  if (!has_written_) return board_.is_free(turn_);
  if (seen_ == call_.size) return true;
  Board::Entry entry;
  const Sight sight = board_.look(seen_, turn_, &entry);
  return sight == Sight::kThere || sight == Sight::kBad;
}

bool BoardCall::is_awaited(std::uint32_t rank) const {
  if (rank == call_.rank) return false;
  Board::Entry entry;
  const bool must_write = rank >= seen_ && board_.look(rank, turn_, &entry) != Sight::kThere;
  return must_write || (!has_written_ && !board_.has_freed(rank, turn_));
}

std::vector<std::uint32_t> BoardCall::awaited() const {
  std::vector<std::uint32_t> all;
  for (std::uint32_t rank = 0; rank < call_.size; ++rank) {
    if (is_awaited(rank)) all.push_back(rank);
  }
  return all;
}

bool BoardCall::awaits_one_on(int core) const {
  for (std::uint32_t rank = 0; rank < call_.size; ++rank) {
    if (board_.stood_on(rank, core) && is_awaited(rank)) return true;
  }
  return false;
}

std::optional<std::uint32_t> BoardCall::out_of_sight() const {
  for (std::uint32_t rank = 0; rank < call_.size; ++rank) {
    Board::Entry entry;
    const bool is_awaited = rank >= seen_ || !has_written_;
    if (is_awaited && board_.look(rank, turn_, &entry) == Sight::kGone) return rank;
  }
  return std::nullopt;
}

}  // namespace hawser::runtime
