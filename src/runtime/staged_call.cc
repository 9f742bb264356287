#include "runtime/staged_call.h"

#include <utility>

#include "base/copy.h"

namespace hawser::runtime {

using schedule::Action;
using schedule::Buffer;

StagedCall::StagedCall(Board& board, const schedule::Call& call, schedule::AllCounts counts, Buffers buffers,
                       std::uint64_t turn, std::uint64_t number, std::uint64_t digest)
    : BoardPhase(board),
      call_(call),
      buffers_(std::move(buffers)),
      staging_(call, std::move(counts)),
      first_turn_(turn),
      number_(number),
      digest_(digest),
      inputs_(turn_at(turn)),
      sums_(turn_at(turn + 1)),
      scratch_(staging_.scratch() * call.element_bytes) {}

bool StagedCall::may_write() const { return written_ < staging_.pieces() && board_.is_free(turn_of_input(written_)); }

bool StagedCall::may_sum() const {
  return staging_.has_sums() && summed_ < written_ && board_.is_free(turn_of_sums(summed_));
}

BoardPhase::Step StagedCall::go_on() {
  if (is_lost_) return look_for_lost();
  if (may_write()) return write();
  if (may_sum()) {
    const Step step = sum();
    if (step != Step::kWaits) return step;
  }
  const std::uint64_t ready = staging_.has_sums() ? summed_ : written_;
  if (taken_ < ready) {
    const Step step = take();
    if (step != Step::kWaits) return step;
  }
  return taken_ == staging_.pieces() ? Step::kOver : Step::kWaits;
}

BoardPhase::Step StagedCall::write() {
  const std::uint64_t turn = turn_of_input(written_);
  staging_.write(written_, steps_);
  act(board_.room(turn).data(), {});
  board_.publish(turn, number_, digest_, staging_.written(written_, call_.rank) * call_.element_bytes);
  ++written_;
  return Step::kMoved;
}

BoardPhase::Step StagedCall::see(BoardTurn& turn, bool are_sums, std::uint64_t piece) {
  const auto bytes_of = [&](std::uint32_t rank) {
    return call_.element_bytes * (are_sums ? staging_.summed(piece, rank) : staging_.written(piece, rank));
  };
  const BoardTurn::Sight sight = turn.look(bytes_of);
  culprit_ = turn.culprit();
  if (sight == BoardTurn::Sight::kDiffers) return Step::kDiffers;
  if (sight == BoardTurn::Sight::kBad) return Step::kBad;
  return sight == BoardTurn::Sight::kAll ? Step::kMoved : Step::kWaits;
}

bool StagedCall::has_lost(BoardTurn& turn) {
  if (turn.is_still_there()) return false;
  culprit_ = turn.culprit();
  is_lost_ = true;
  return true;
}

/// Boards that have gone do not come again. One that is there has been changed while others read it.
BoardPhase::Step StagedCall::look_for_lost() const { return board_.is_gone(culprit_) ? Step::kWaits : Step::kBad; }

BoardPhase::Step StagedCall::sum() {
  if (const Step seen = see(inputs_, false, summed_); seen != Step::kMoved) return seen;
  const std::uint64_t turn = turn_of_sums(summed_);
  staging_.sum(summed_, steps_);
  act(board_.room(turn).data(), inputs_.written());
  if (has_lost(inputs_)) return Step::kWaits;
  board_.publish(turn, number_, digest_, staging_.summed(summed_, call_.rank) * call_.element_bytes);
  board_.finish(inputs_.turn());
  inputs_ = turn_at(turn_of_input(++summed_));
  return Step::kMoved;
}

BoardPhase::Step StagedCall::take() {
  BoardTurn& turn = staging_.has_sums() ? sums_ : inputs_;
  if (const Step seen = see(turn, staging_.has_sums(), taken_); seen != Step::kMoved) return seen;
  staging_.take(taken_, steps_);
  act(nullptr, turn.written());
  if (has_lost(turn)) return Step::kWaits;
  board_.finish(turn.turn());
  ++taken_;
  turn = turn_at(staging_.has_sums() ? turn_of_sums(taken_) : turn_of_input(taken_));
  return Step::kMoved;
}

/// The steps that were made last. `board` is this rank's place for this turn; it reads what is in `read`, by rank.
void StagedCall::act(std::byte* board, std::span<const std::span<const std::byte>> read) {
  const auto place = [&](const schedule::Slice& slice) {
    const std::uint64_t at = slice.at * call_.element_bytes;
    if (slice.buffer == Buffer::kInput) return const_cast<std::byte*>(buffers_.input) + at;  // It is only read.
    if (slice.buffer == Buffer::kScratch) return scratch_.data() + at;
    return (slice.buffer == Buffer::kOutput ? buffers_.output : board) + at;
  };
  const std::uint64_t output = schedule::output_count(call_) * call_.element_bytes;
  bool has_streamed = false;
  for (const schedule::Step& step : steps_) {
    const std::uint64_t bytes = step.to.count * call_.element_bytes;
    std::byte* const to = place(step.to);
    moved_ += bytes;
    if (step.action == Action::kCopy) {
      const base::CopyHint hint = {.read_elsewhere = step.to.buffer == Buffer::kBoard};
      const std::byte* const from = place(step.from);
      if (from != to) has_streamed = base::copy_bytes(to, from, bytes, hint) || has_streamed;
      continue;
    }
    const std::byte* const there = read[step.peer].data() + step.there.at * call_.element_bytes;
    if (step.action == Action::kCombineRead) {
      buffers_.combine(to, place(step.from), there, step.to.count);
    } else {
      has_streamed = base::copy_bytes(to, there, bytes, {.total_bytes = output}) || has_streamed;
    }
  }
  if (has_streamed) base::stream_fence();
  steps_.clear();
}

bool StagedCall::has_news() const {
  if (is_lost_) return look_for_lost() == Step::kBad;
  if (may_write()) return true;
  if (may_sum() && inputs_.has_news()) return true;
  if (staging_.has_sums()) return taken_ < summed_ && sums_.has_news();
  return taken_ < written_ && inputs_.has_news();
}

bool StagedCall::is_awaited(std::uint32_t rank) const {
  if (rank == call_.rank) return false;
  if (written_ < staging_.pieces() && !board_.has_freed(rank, turn_of_input(written_))) return true;
  if (!staging_.has_sums()) return taken_ < written_ && inputs_.awaits(rank);
  if (summed_ < written_ && (inputs_.awaits(rank) || !board_.has_freed(rank, turn_of_sums(summed_)))) return true;
  return taken_ < summed_ && sums_.awaits(rank);
}

}  // namespace hawser::runtime
