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
#include <vector>

#include "schedule/collective.h"

namespace hawser::schedule {

/// Of a gather or scatter: up to so many pieces, all blocks together, messages are as fast, and wait for no other rank.
inline constexpr std::uint64_t kOneWayPieces = 2;

/// Whether the ranks of one host can do the call that way. All ranks get the same answer.
bool fits_staging(const Call& call);

class Staging {
 public:
  /// The call outlives it, and `fits_staging`.
  explicit Staging(const Call& call);
  explicit Staging(Call&&) = delete;

  std::uint64_t pieces() const { return pieces_; }
  /// Of the boards.
  std::uint64_t turns() const { return pieces_ * turns_of_piece(); }
  std::uint64_t turns_of_piece() const { return has_sums_ ? 2 : 1; }
  bool has_sums() const { return has_sums_; }
  /// Elements that a rank has on its board of that piece: the input, and the sums.
  std::uint64_t written(std::uint64_t piece, std::uint32_t rank) const;
  std::uint64_t summed(std::uint64_t piece, std::uint32_t rank) const;

  /// What this rank does: of kBoard it writes its own, and reads that of the step's peer. The steps are in order.
  /// From the caller's buffers to its board. Also its own part of the result, where that is only a copy.
  void write(std::uint64_t piece, std::vector<Step>& steps) const;
  /// From all inputs to the output, and to its board. Only where there are sums.
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
  std::uint64_t place_on_board(std::uint64_t piece, std::uint32_t rank) const;
  Slice whole(std::uint64_t piece, std::uint32_t rank) const;
  void combine(std::uint64_t piece, Slice result, std::vector<Step>& steps) const;

  const Call& call_;
  const bool has_sums_;
  Blocks blocks_;           ///< Of `counts`.
  std::uint64_t step_ = 1;  ///< Elements of one rank's block that are in a piece. Of sums: of the tensor.
  std::uint64_t pieces_ = 0;
};

}  // namespace hawser::schedule
