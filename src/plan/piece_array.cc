#include "plan/piece_array.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/large_memory.h"

namespace hawser::plan {
namespace {

void* allocate(std::size_t bytes) {
  if (bytes < base::kLargeFrom) return std::malloc(bytes);
  const std::size_t rounded = (bytes + base::kHugePage - 1) / base::kHugePage * base::kHugePage;
  void* memory = std::aligned_alloc(base::kHugePage, rounded);
  base::prefer_huge_pages(memory, rounded);
  return memory;
}

}  // namespace

PieceArray::PieceArray(std::size_t capacity) {
  if (capacity == 0 || capacity > SIZE_MAX / 2 / sizeof(Piece)) return;
  pieces_.reset(static_cast<Piece*>(allocate(capacity * sizeof(Piece))));
  if (pieces_ != nullptr) capacity_ = capacity;
}

void PieceArray::finish(std::size_t size) {
  HAWSER_ASSERT(size <= capacity_, "more pieces than there was room for");
  size_ = size;
  if (size > capacity_ / 2 || capacity_ == 0) return;
  PieceArray small(std::max<std::size_t>(size, 1));
  if (small.data() == nullptr) return;  // Keeping the room is no error.
  if (size != 0) std::memcpy(static_cast<void*>(small.data()), data(), size * sizeof(Piece));
  small.size_ = size;
  *this = std::move(small);
}

}  // namespace hawser::plan
