#include "plan/piece_array.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace hawser::plan {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
/// Smaller arrays would waste most of a huge page, and clearing it costs more than the faults it saves.
constexpr std::size_t kHugeFrom = std::size_t{1} << 20;

void* allocate(std::size_t bytes) {
  if (bytes < kHugeFrom) return std::malloc(bytes);
  const std::size_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* memory = std::aligned_alloc(kHugePage, rounded);
  // Only advice: without it the pages are small and all else is the same.
  if (memory != nullptr) (void)madvise(memory, rounded, MADV_HUGEPAGE);
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
  if (size > capacity_ / 2) return;
  PieceArray small(std::max<std::size_t>(size, 1));
  if (small.data() == nullptr) return;  // Keeping the room is no error.
  if (size != 0) std::memcpy(static_cast<void*>(small.data()), data(), size * sizeof(Piece));
  small.size_ = size;
  *this = std::move(small);
}

}  // namespace hawser::plan
