#pragma once

// ByteQueue: bytes of a stream in chunks that never move once they are written, from the first that is still needed to
// the last that came. QUIC sends lost bytes again from where they lie, and what came waits here for its reader.
//
// Thread rule: one thread. Memory: what it holds, rounded up to chunks; whoever appends bounds it. A ChunkPool keeps
// kKeptMax chunks that nobody uses.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace hawser::backend::quic {

/// Chunks that were used up, for the queues of one thread: the last one is given first, for it may be in a cache. The
/// heap would give their pages back to the system, and each would be cleared once more.
class ChunkPool {
 public:
  using Chunk = std::unique_ptr<std::byte[]>;
  static constexpr std::size_t kChunk = 32 * 1024;
  static constexpr std::size_t kKeptMax = 32;

  Chunk take();
  void give(Chunk chunk);
  std::size_t kept() const { return kept_.size(); }

 private:
  std::vector<Chunk> kept_;
};

class ByteQueue {
 public:
  static constexpr std::size_t kChunk = ChunkPool::kChunk;

  /// The pool outlives it.
  explicit ByteQueue(ChunkPool& pool) : pool_(pool) {}
  ~ByteQueue() { clear(); }
  ByteQueue(const ByteQueue&) = delete;
  ByteQueue& operator=(const ByteQueue&) = delete;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  void append(std::span<const std::byte> bytes);
  /// Takes a prefix of `parts`, `most` bytes at most; returns how many.
  std::size_t append(std::span<const iovec> parts, std::size_t most);
  /// The bytes from `at`, counted from the first that is held, as far as they lie together; empty at the end.
  std::span<const std::byte> from(std::size_t at) const;
  /// Forgets the first ones.
  void drop(std::size_t bytes);
  /// Moves the first ones into `parts`, in order; returns how many.
  std::size_t take(std::span<const iovec> parts);
  void clear();

 private:
  ChunkPool& pool_;
  std::deque<ChunkPool::Chunk> chunks_;
  std::size_t begin_ = 0;  ///< Where the first byte is in the first chunk.
  std::size_t size_ = 0;
};

}  // namespace hawser::backend::quic
