#pragma once

// FirstTouch: which windows of a peer's mapped region this process has used yet.
//
// A first write to a shared page maps that page alone; a first read maps those around it that exist too, writable as
// the mapping is (Linux's fault-around, 64 KiB unless set otherwise). So a byte of each window is read before the
// first write into it: one fault where there would be sixteen.
//
// Thread rule: confined to its path's lane. Lifetime: borrows the mapping.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/chunk_copy.h"

namespace hawser::backend::shm {

class FirstTouch {
 public:
  static constexpr std::uint64_t kWindow = 64 * 1024;

  FirstTouch() = default;
  FirstTouch(const std::byte* base, std::uint64_t size)
      : base_(base), first_(window(0)), left_(size == 0 ? 0 : window(size - 1) - first_ + 1) {}

  /// Windows not touched yet.
  std::uint64_t left() const { return left_; }

  /// Before up to `limit` bytes of a write are copied from the cursor on. Costs one comparison once all is touched.
  void prepare(const Chunk& chunk, const Cursor& cursor, std::uint64_t limit) {
    if (left_ == 0 || chunk.op != Operation::kWrite) return;
    prepare_some(chunk, cursor, limit);
  }

 private:
  std::uint64_t window(std::uint64_t offset) const {
    return (reinterpret_cast<std::uintptr_t>(base_) + offset) / kWindow;
  }

  // A large copy advances four runs at once, see Cursor::run: pieces, or quarters of a block of one piece.
  void prepare_some(const Chunk& chunk, const Cursor& cursor, std::uint64_t limit) {
    constexpr std::size_t kRuns = base::kStreamWidth;
    const std::uint64_t ahead = std::max<std::uint64_t>(limit, kCopyBlock);
    std::uint64_t seen = 0;
    for (std::size_t i = cursor.piece; i < chunk.pieces.size() && (seen < limit || i < cursor.piece + kRuns); ++i) {
      const Piece& piece = chunk.pieces[i];
      const std::uint64_t from = (i == cursor.piece ? cursor.offset : 0) + (i < cursor.piece + kRuns ? cursor.run : 0);
      if (from >= piece.size) continue;
      const std::uint64_t count = std::min(piece.size - from, ahead);
      touch(piece.remote + from, count);
      seen += count;
    }
  }

  void touch(std::uint64_t offset, std::uint64_t size) {
    if (touched_.empty()) touched_.resize(left_);
    for (std::uint64_t at = window(offset); at <= window(offset + size - 1); ++at) {
      if (touched_[at - first_]) continue;
      touched_[at - first_] = true;
      --left_;
      const auto start = reinterpret_cast<const std::byte*>(at * kWindow);
      static_cast<void>(*static_cast<const volatile std::byte*>(std::max(start, base_)));
    }
  }

  const std::byte* base_ = nullptr;
  std::uint64_t first_ = 0;
  std::uint64_t left_ = 0;
  std::vector<bool> touched_;  ///< Empty until the first write.
};

}  // namespace hawser::backend::shm
