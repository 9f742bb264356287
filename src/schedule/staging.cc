#include "schedule/staging.h"

#include <algorithm>

namespace hawser::schedule {
namespace {

/// The rank's block comes from the input of each, or from that of the root.
bool comes_in_shares(Operation operation) {
  return operation == Operation::kReduce || operation == Operation::kAllReduce ||
         operation == Operation::kReduceScatter || operation == Operation::kScatter ||
         operation == Operation::kAllToAll;
}

bool combines(Operation operation) {
  return comes_in_shares(operation) && operation != Operation::kScatter && operation != Operation::kAllToAll;
}

bool is_of_one_tensor(Operation operation) {
  return operation == Operation::kBroadcast || operation == Operation::kReduce || operation == Operation::kAllReduce;
}

/// A board holds so many elements for each rank.
std::uint64_t share_of_board(const Call& call) { return call.piece_bytes / call.element_bytes / call.size; }

/// In an all_to_all each rank knows its own counts only, so these must not decide.
std::uint64_t elements_in(const Call& call) {
  if (call.operation == Operation::kAllToAll) return 1;
  return is_of_one_tensor(call.operation) ? call.count : Blocks(call.counts).total();
}

void add(std::vector<Step>& steps, const Step& step) {
  if (step.to.count > 0) steps.push_back(step);
}

}  // namespace

std::vector<std::uint64_t> AllCounts::letter(const Call& call) {
  std::vector<std::uint64_t> all = call.counts;
  all.insert(all.end(), call.in_counts.begin(), call.in_counts.end());
  return all;
}

std::optional<std::pair<std::uint32_t, std::uint32_t>> AllCounts::first_difference() const {
  for (std::uint32_t from = 0; from < size_; ++from) {
    for (std::uint32_t to = 0; to < size_; ++to) {
      if (sent(from, to) != wanted(from, to)) return std::pair(from, to);
    }
  }
  return std::nullopt;
}

std::uint64_t AllCounts::most() const { return told_.empty() ? 0 : std::ranges::max(told_); }

bool has_pieces(const Call& call) {
  const Operation what = call.operation;
  const bool is_moved = what == Operation::kBroadcast || what == Operation::kAllGather || what == Operation::kGather ||
                        what == Operation::kScatter || what == Operation::kAllToAll;
  const bool is_combined = combines(what) && call.commutes && !call.reproducible;
  return call.may_use_boards && call.hosts.empty() && call.size >= 2 && call.size <= kBoardRanksMax &&
         (is_moved || is_combined) && elements_in(call) > 0 && share_of_board(call) > 0;
}

bool fits_staging(const Call& call) {
  const bool is_one_way = call.operation == Operation::kGather || call.operation == Operation::kScatter;
  if (is_one_way && elements_in(call) * call.element_bytes <= kOneWayPieces * call.piece_bytes) return false;
  return has_pieces(call);
}

bool has_turns_for(const Call& call, const AllCounts& counts) {
  return counts.most() / share_of_board(call) < kPiecesMax;
}

std::uint64_t turns_of_staging(const Call& call) {
  if (call.operation == Operation::kAllToAll) return 1 + kPiecesMax;  // The first one is for the counts.
  return Staging(call).turns();
}

Staging::Staging(const Call& call, AllCounts counts)
    : call_(call),
      has_sums_(call.operation == Operation::kReduce || call.operation == Operation::kAllReduce),
      counts_(std::move(counts)),
      blocks_(call.counts),
      come_(call.in_counts) {
  const std::uint64_t on_board = call.piece_bytes / call.element_bytes;
  const std::uint64_t each = share_of_board(call);
  step_ = has_sums_ ? each * call.size : has_shares() ? each : on_board;
  std::uint64_t most = call.count;
  if (!is_of_one_tensor(call.operation)) most = std::ranges::max(call.counts);
  if (call.operation == Operation::kAllToAll) most = counts_.most();
  pieces_ = most / step_ + (most % step_ > 0 ? 1 : 0);
}

bool Staging::has_shares() const { return comes_in_shares(call_.operation); }

bool Staging::is_writer(std::uint32_t rank) const {
  switch (call_.operation) {
    case Operation::kBroadcast:
    case Operation::kScatter:
      return rank == call_.root;
    case Operation::kGather:
      return rank != call_.root;
    default:
      return true;
  }
}

bool Staging::is_reader(std::uint32_t rank) const {
  switch (call_.operation) {
    case Operation::kBroadcast:
    case Operation::kScatter:
      return rank != call_.root;
    case Operation::kGather:
    case Operation::kReduce:
      return rank == call_.root;
    default:
      return true;
  }
}

Buffer Staging::source() const {
  if (call_.operation == Operation::kBroadcast) return Buffer::kOutput;
  return call_.has_input_in_output && is_reader(call_.rank) ? Buffer::kOutput : Buffer::kInput;
}

std::uint64_t Staging::part_of(std::uint64_t count, std::uint64_t piece) const {
  const std::uint64_t before = piece * step_;
  return before < count ? std::min(count - before, step_) : 0;
}

/// Of the buffer that holds all shares: what that rank combines, or gets.
Slice Staging::share(std::uint64_t piece, std::uint32_t rank) const {
  if (!has_sums_) return {source(), blocks_.at(rank) + piece * step_, part_of(blocks_.count(rank), piece)};
  const std::uint64_t all = part_of(call_.count, piece), each = all / call_.size, more = all % call_.size;
  const std::uint64_t at = rank * each + std::min<std::uint64_t>(rank, more);
  return {source(), piece * step_ + at, each + (rank < more ? 1 : 0)};
}

std::uint64_t Staging::place_on_board(std::uint64_t piece, std::uint32_t rank) const {
  return has_sums_ ? share(piece, rank).at - piece * step_ : rank * step_;
}

/// Where there are no shares: what that rank brings, in the result.
Slice Staging::whole(std::uint64_t piece, std::uint32_t rank) const {
  if (call_.operation == Operation::kBroadcast) {
    return {Buffer::kOutput, piece * step_, rank == call_.root ? part_of(call_.count, piece) : 0};
  }
  return {Buffer::kOutput, blocks_.at(rank) + piece * step_, part_of(blocks_.count(rank), piece)};
}

/// Of an all_to_all, and of a scatter, whose root sends: elements from one rank to another.
std::uint64_t Staging::sent(std::uint64_t piece, std::uint32_t from, std::uint32_t to) const {
  const bool is_own = call_.operation == Operation::kAllToAll;
  return part_of(is_own ? counts_.sent(from, to) : blocks_.count(to), piece);
}

/// Where that goes at this rank.
Slice Staging::landing(std::uint64_t piece, std::uint32_t from) const {
  const std::uint64_t begin = call_.operation == Operation::kAllToAll ? come_.at(from) : 0;
  return {Buffer::kOutput, begin + piece * step_, sent(piece, from, call_.rank)};
}

std::uint64_t Staging::scratch() const { return has_sums_ && !is_reader(call_.rank) ? step_ / call_.size : 0; }

std::uint64_t Staging::written(std::uint64_t piece, std::uint32_t rank) const {
  if (!is_writer(rank)) return 0;
  if (!has_shares()) return whole(piece, rank).count;
  for (std::uint32_t last = call_.size; last-- > 0;) {
    const std::uint64_t count = has_sums_ ? share(piece, last).count : sent(piece, rank, last);
    if (count > 0) return place_on_board(piece, last) + count;
  }
  return 0;
}

std::uint64_t Staging::summed(std::uint64_t piece, std::uint32_t rank) const {
  const bool is_taken = call_.operation != Operation::kReduce || rank != call_.root;
  return is_taken ? share(piece, rank).count : 0;
}

void Staging::write(std::uint64_t piece, std::vector<Step>& steps) const {
  const std::uint32_t me = call_.rank;
  if (has_shares()) {
    for (std::uint32_t rank = 0; rank < call_.size; ++rank) {
      const Slice its = share(piece, rank);
      if (rank != me && is_writer(me)) add(steps, copy(its, {Buffer::kBoard, place_on_board(piece, rank), its.count}));
      if (rank == me && !combines(call_.operation) && is_writer(me)) add(steps, copy(its, landing(piece, me)));
    }
    return;
  }
  const Slice result = whole(piece, me);
  const Slice own = source() == Buffer::kOutput ? result : Slice{Buffer::kInput, piece * step_, result.count};
  if (is_writer(me)) add(steps, copy(own, {Buffer::kBoard, 0, own.count}));
  if (is_reader(me) && own.buffer == Buffer::kInput) add(steps, copy(own, result));
}

/// This rank's share of all inputs, its own first.
void Staging::combine(std::uint64_t piece, Slice result, std::vector<Step>& steps) const {
  Slice sum = share(piece, call_.rank);
  const Slice there = {Buffer::kBoard, place_on_board(piece, call_.rank), sum.count};
  result.count = sum.count;
  for (std::uint32_t distance = 1; distance < call_.size; ++distance) {
    add(steps, {Action::kCombineRead, (call_.rank + distance) % call_.size, sum, result, there});
    sum = result;
  }
}

void Staging::sum(std::uint64_t piece, std::vector<Step>& steps) const {
  Slice result = share(piece, call_.rank);
  const Slice on_board = {Buffer::kBoard, 0, result.count};
  // Not on the board: each store would take a line from the cores that have read it. A copy takes many at once.
  if (is_reader(call_.rank)) {
    result.buffer = Buffer::kOutput;
  } else {
    result = {Buffer::kScratch, 0, result.count};
  }
  combine(piece, result, steps);
  if (summed(piece, call_.rank) > 0) add(steps, copy(result, on_board));
}

void Staging::take(std::uint64_t piece, std::vector<Step>& steps) const {
  if (!is_reader(call_.rank)) return;
  if (call_.operation == Operation::kReduceScatter) return combine(piece, {Buffer::kOutput, piece * step_, 0}, steps);
  const std::uint32_t me = call_.rank;
  for (std::uint32_t distance = 1; distance < call_.size; ++distance) {
    const std::uint32_t rank = (me + distance) % call_.size;
    if (!is_writer(rank) && !has_sums_) continue;
    const bool is_share = has_shares() && !has_sums_;  // Of several on its board.
    Slice its = is_share ? landing(piece, rank) : has_sums_ ? share(piece, rank) : whole(piece, rank);
    its.buffer = Buffer::kOutput;
    add(steps, {Action::kRead, rank, {}, its, {Buffer::kBoard, is_share ? place_on_board(piece, me) : 0, its.count}});
  }
}

Staging::Work Staging::work() const {
  constexpr double kOwn = 0.5;      // A byte that stays at its rank, to one that others read.
  constexpr double kOneWay = 1.75;  // A byte that one rank writes and all others read, partly at the same time.
  const double ranks = call_.size, others = (ranks - 1) / ranks;
  const bool is_one = is_of_one_tensor(call_.operation);
  const double all = static_cast<double>((is_one ? call_.count : blocks_.total()) * call_.element_bytes);
  switch (call_.operation) {
    case Operation::kBroadcast:
      return {.copied = kOneWay * all};
    case Operation::kAllReduce:
    case Operation::kReduce:
      return {.copied = all * (1 + others), .combined = all * others};
    case Operation::kReduceScatter:
      return {.copied = all * others, .combined = all * others};
    case Operation::kAllGather:
      return {.copied = all * (1 + kOwn / ranks)};
    default:
      return {.copied = all};
  }
}

}  // namespace hawser::schedule
