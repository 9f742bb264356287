#pragma once

// Merger: appends pairs to an array of pieces, each merged into the piece before it when both sides are contiguous.
//
// Thread rule: one thread. Lifetime: writes into the caller's array, which must have room for every pair.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/pieces.h"

namespace hawser::plan {

/// Without a branch on the outcome: random blocks never merge, sequential ones always do, but a mixture would cost a
/// mispredicted branch per pair. The open piece is kept in registers and written again each time it grows.
class Merger {
 public:
  explicit Merger(Piece* out) : out_(out) {}

  void add(std::byte* local, std::uint64_t remote, std::uint64_t size) {
    const bool joins = (local == local_end_) & (remote == remote_end_);
    count_ += joins ? 0 : 1;
    open_.local = joins ? open_.local : local;
    open_.remote = joins ? open_.remote : remote;
    open_.size = joins ? open_.size + size : size;
    local_end_ = local + size;
    remote_end_ = remote + size;
    out_[count_ - 1] = open_;  // The first pair never joins: see below.
  }
  std::size_t count() const { return count_; }
  Piece* begin() const { return out_; }
  Piece* end() const { return out_ + count_; }

 private:
  Piece* out_;
  std::size_t count_ = 0;
  Piece open_;
  // No block begins here: it would have to be empty, and those were refused.
  std::byte* local_end_ = nullptr;
  std::uint64_t remote_end_ = UINT64_MAX;
};

/// One for each group, where the group begins if nothing merges: `count` of a group is that of its pairs until then.
std::vector<Merger> mergers_of(Pieces& pieces);
/// Closes the gaps that merging has left, and sets where each group begins and how many pieces it has.
void close_gaps(std::span<const Merger> mergers, Pieces& pieces);

}  // namespace hawser::plan
