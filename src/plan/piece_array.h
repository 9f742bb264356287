#pragma once

// PieceArray: room for pieces, allocated once at an upper bound and filled from the front.
//
// Large arrays ask for huge pages: filling a plan of 100,000 pieces would else spend more time in page faults than on
// the pieces. Elements are not initialised before they are written.
//
// Thread rule: one thread while it is filled, then constant. Lifetime: moving it keeps the addresses of its pieces.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "backend/backend.h"

namespace hawser::plan {

using backend::Piece;

class PieceArray {
 public:
  PieceArray() = default;
  /// Null data when there is no memory.
  explicit PieceArray(std::size_t capacity);

  Piece* data() { return pieces_.get(); }
  const Piece* data() const { return pieces_.get(); }
  std::size_t capacity() const { return capacity_; }
  std::size_t size() const { return size_; }
  std::span<const Piece> span() const { return {pieces_.get(), size_}; }
  const Piece& operator[](std::size_t at) const { return pieces_.get()[at]; }
  /// After filling: how many there are. Gives back memory when most of the room was not needed (moves the pieces).
  void finish(std::size_t size);

 private:
  struct Free {
    void operator()(Piece* pieces) const { std::free(pieces); }
  };
  std::unique_ptr<Piece[], Free> pieces_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
};

}  // namespace hawser::plan
