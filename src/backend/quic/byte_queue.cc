#include "backend/quic/byte_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/copy.h"
#include "base/planted.h"

namespace hawser::backend::quic {

ChunkPool::Chunk ChunkPool::take() {
  if (kept_.empty()) return std::make_unique_for_overwrite<std::byte[]>(kChunk);
  Chunk chunk = std::move(kept_.back());
  kept_.pop_back();
  return chunk;
}

void ChunkPool::give(Chunk chunk) {
  if (kept_.size() < kKeptMax) kept_.push_back(std::move(chunk));
}

void ByteQueue::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t end = (begin_ + size_) % kChunk;
    if (begin_ + size_ == chunks_.size() * kChunk) {
      chunks_.push_back(pool_.take());
    }
    const std::size_t count = std::min(bytes.size(), kChunk - end);
    base::copy_cached(chunks_.back().get() + end, bytes.data(), count);
    size_ += count;
    bytes = bytes.subspan(count);
  }
}

std::size_t ByteQueue::append(std::span<const iovec> parts, std::size_t most) {
  const std::size_t before = size_;
  for (const iovec& part : parts) {
    const std::size_t count = std::min(part.iov_len, most - (size_ - before));
    append({static_cast<const std::byte*>(part.iov_base), count});
    if (count < part.iov_len) break;
  }
  return size_ - before;
}

std::span<const std::byte> ByteQueue::from(std::size_t at) const {
  if (at >= size_) return {};
  const std::size_t place = begin_ + at;
  const std::size_t count = std::min(size_ - at, kChunk - place % kChunk);
  const std::size_t chunk = base::planted(base::Planted::kChunkMistaken) ? 0 : place / kChunk;
  return {chunks_[chunk].get() + place % kChunk, count};
}

void ByteQueue::drop(std::size_t bytes) {
  HAWSER_ASSERT(bytes <= size_, "more bytes are dropped than there are");
  begin_ += bytes;
  size_ -= bytes;
  while (begin_ >= kChunk) {
    pool_.give(std::move(chunks_.front()));
    chunks_.pop_front();
    begin_ -= kChunk;
  }
}

std::size_t ByteQueue::take(std::span<const iovec> parts) {
  std::size_t total = 0;
  for (const iovec& part : parts) {
    for (std::size_t at = 0; at < part.iov_len && size_ > 0;) {
      const std::span<const std::byte> next = from(0);
      const std::size_t count = std::min(next.size(), part.iov_len - at);
      base::copy_cached(static_cast<std::byte*>(part.iov_base) + at, next.data(), count);
      drop(count);
      at += count;
      total += count;
    }
  }
  return total;
}

void ByteQueue::clear() {
  for (ChunkPool::Chunk& chunk : chunks_) pool_.give(std::move(chunk));
  chunks_.clear();
  begin_ = size_ = 0;
}

}  // namespace hawser::backend::quic
