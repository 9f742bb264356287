#pragma once

// Stage: the bytes on their way out that are the protocol's own: heads of frames, small payloads, messages. A byte
// keeps its address until it is released, because a stream may have to send it again.
//
// Thread rule: one thread. Memory: blocks that come and go with what is staged; one is kept.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "backend/stream/ring.h"

namespace hawser::backend::stream {

class Stage {
 public:
  static constexpr std::size_t kBlockSize = 16 * 1024;

  /// Position after the last byte; positions count from the first byte ever staged.
  std::uint64_t end() const { return end_; }
  /// Bytes staged and not released yet, rounded up to what they occupy.
  std::size_t held() const { return blocks_.count() * kBlockSize; }

  /// `size` (<= kBlockSize) bytes in one piece, to be written by the caller now.
  std::byte* extend(std::size_t size);
  /// Any size; may be split.
  void append(std::span<const std::byte> bytes);

  /// Parts for the bytes [from, to); returns how many, at most out.size(). `*bytes` is their sum.
  std::size_t gather(std::uint64_t from, std::uint64_t to, std::span<iovec> out, std::uint64_t* bytes) const;
  void release(std::uint64_t to);

 private:
  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    std::uint64_t begin = 0;
    std::size_t used = 0;
  };
  Block& add_block();

  Ring<Block> blocks_;
  Block spare_;
  std::uint64_t end_ = 0;
};

}  // namespace hawser::backend::stream
