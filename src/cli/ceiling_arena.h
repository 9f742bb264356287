#pragma once

// Scratch for the raw loops: a memory file like those that Agent::allocate hands out, and blocks in random order.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <hawser/status.h>

namespace hawser::cli {

class ScratchArena {
 public:
  /// Mapped and touched.
  static Result<ScratchArena> create(std::uint64_t size);
  ScratchArena(ScratchArena&& other) noexcept : base_(std::exchange(other.base_, nullptr)), size_(other.size_) {}
  ScratchArena& operator=(ScratchArena&&) = delete;
  ~ScratchArena();

  std::byte* base() const { return base_; }

 private:
  ScratchArena(std::byte* base, std::uint64_t size) : base_(base), size_(size) {}
  std::byte* base_;
  std::uint64_t size_;
};

/// Offsets of `count` blocks in random order; adjacent ones are neighbours by chance only.
std::vector<std::uint64_t> shuffled_offsets(std::uint64_t count, std::uint64_t block_bytes, std::uint64_t seed);

}  // namespace hawser::cli
