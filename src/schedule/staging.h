#pragma once

// Staging: how the ranks of one host do a large collective whose buffers the others cannot read: they bring it piece by
// piece to their boards (runtime/board.h), and read it there while it is in caches.
//
// Each piece takes one turn of the boards: a rank writes what others need of its input, waits until all have written,
// and takes what it needs. A reduction for all, or for a root, takes a second turn: each rank combines its share of the
// piece, writes the sums, and the others take those. So a rank copies in what others combine, and reads each byte of
// the result once. Pieces follow one another without meetings: a rank writes ahead as long as it has slots.
//
// Thread rule: pure functions.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "schedule/collective.h"

namespace hawser::schedule {

/// Of a gather or scatter: up to so many pieces, all blocks together, messages are as fast, and wait for no other rank.
inline constexpr std::uint64_t kOneWayPieces = 2;

/// Whether the ranks of one host can do the call that way. All ranks get the same answer. Of an all_to_all no rank
/// knows the others' counts: see AllCounts.
bool has_pieces(const Call& call);
/// They do it that way if it is the cheapest.
bool fits_staging(const Call& call);

/// An all_to_all has fewer pieces than these. Its ranks take turns for all of them, before they know each other's
/// counts.
inline constexpr std::uint64_t kPiecesMax = std::uint64_t{1} << 32;
/// The turns of the boards that a call takes at its beginning. All ranks get the same answer.
std::uint64_t turns_of_staging(const Call& call);

/// What the ranks of an all_to_all tell each other first: each its counts of what it sends, and then of what it gets.
class AllCounts {
 public:
  AllCounts() = default;
  explicit AllCounts(std::uint32_t size) : size_(size), told_(std::size_t{2} * size * size) {}
  static std::vector<std::uint64_t> letter(const Call& call);

  /// The letters of all ranks, in their order.
  std::vector<std::uint64_t>& letters() { return told_; }
  /// Elements from one rank to another, as the sender says, and the receiver.
  std::uint64_t sent(std::uint32_t from, std::uint32_t to) const { return told_[(std::size_t{2} * from) * size_ + to]; }
  std::uint64_t wanted(std::uint32_t from, std::uint32_t to) const {
    return told_[(std::size_t{2} * to + 1) * size_ + from];
  }
  /// The first two ranks, sender and receiver, that do not say the same.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> first_difference() const;
  /// The largest block.
  std::uint64_t most() const;

 private:
  std::uint32_t size_ = 0;
  std::vector<std::uint64_t> told_;
};

/// Whether the ranks have taken turns enough for an all_to_all with these counts.
bool has_turns_for(const Call& call, const AllCounts& counts);

class Staging {
 public:
  /// The call outlives it, and `fits_staging`.
  explicit Staging(const Call& call) : Staging(call, AllCounts()) {}
  /// Of an all_to_all, whose ranks say the same.
  Staging(const Call& call, AllCounts counts);
  explicit Staging(Call&&) = delete;
  Staging(Call&&, AllCounts) = delete;

  std::uint64_t pieces() const { return pieces_; }
  /// Of the boards.
  std::uint64_t turns() const { return pieces_ * turns_of_piece(); }
  std::uint64_t turns_of_piece() const { return has_sums_ ? 2 : 1; }
  bool has_sums() const { return has_sums_; }
  /// Elements that this rank needs while it sums.
  std::uint64_t scratch() const;
  /// Elements that a rank has on its board of that piece: the input, and the sums.
  std::uint64_t written(std::uint64_t piece, std::uint32_t rank) const;
  std::uint64_t summed(std::uint64_t piece, std::uint32_t rank) const;

  /// What this rank does: of kBoard it writes its own, and reads that of the step's peer. The steps are in order.
  /// From the caller's buffers to its board. Also its own part of the result, where that is only a copy.
  void write(std::uint64_t piece, std::vector<Step>& steps) const;
  /// From all inputs to the output, or scratch, and to its board. Only where there are sums.
  void sum(std::uint64_t piece, std::vector<Step>& steps) const;
  /// To the output: from the sums where there are any, else from the inputs.
  void take(std::uint64_t piece, std::vector<Step>& steps) const;

  /// Bytes that the busiest rank copies, and combines, for the whole call.
  struct Work {
    double copied = 0, combined = 0;
  };
  Work work() const;

 private:
  static Step copy(Slice from, Slice to) { return {Action::kCopy, 0, from, to}; }
  bool has_shares() const;
  bool is_writer(std::uint32_t rank) const;
  bool is_reader(std::uint32_t rank) const;
  Buffer source() const;
  /// Of a block of so many elements, what comes in that piece.
  std::uint64_t part_of(std::uint64_t count, std::uint64_t piece) const;
  Slice share(std::uint64_t piece, std::uint32_t rank) const;
  std::uint64_t sent(std::uint64_t piece, std::uint32_t from, std::uint32_t to) const;
  Slice landing(std::uint64_t piece, std::uint32_t from) const;
  std::uint64_t place_on_board(std::uint64_t piece, std::uint32_t rank) const;
  Slice whole(std::uint64_t piece, std::uint32_t rank) const;
  void combine(std::uint64_t piece, Slice result, std::vector<Step>& steps) const;

  const Call& call_;
  const bool has_sums_;
  const AllCounts counts_;  ///< Of an all_to_all.
  Blocks blocks_;           ///< Of `counts`.
  Blocks come_;             ///< Of `in_counts`.
  std::uint64_t step_ = 1;  ///< A piece has so many elements of each rank's block, or of the tensor.
  std::uint64_t pieces_ = 0;
};

}  // namespace hawser::schedule
