#pragma once

// Board: memory that the bench's two processes share without Hawser: a page of words for raw loops and for ending a
// phase, and an arena that raw loops copy into.
//
// Thread rule: the words are atomic; the arena belongs to whoever's phase it is. Lifetime: unmapped with its Board; the
// memory lives as long as either process maps it.

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <hawser/status.h>

#include "base/fd.h"

namespace hawser::cli::bench {

inline constexpr std::size_t kRawSocketsMax = 4;

struct BoardPage {
  alignas(64) std::atomic<std::uint32_t> over;  ///< Phases up to this number are over.
  alignas(64) std::atomic<std::uint32_t> ping;
  alignas(64) std::atomic<std::uint32_t> pong;
  alignas(64) std::atomic<std::uint64_t> filled;   ///< Slots that the raw writer has filled.
  alignas(64) std::atomic<std::uint64_t> emptied;  ///< Slots that the raw reader has read.
  alignas(
      64) std::array<std::atomic<std::uint64_t>, kRawSocketsMax> last;  ///< A raw stream ends after that many passes.
};

class Board {
 public:
  static Result<Board> create(std::uint64_t arena_bytes);
  /// The board that process `owner` has as its descriptor `fd`.
  static Result<Board> attach(pid_t owner, int fd, std::uint64_t arena_bytes);
  Board(Board&& other) noexcept
      : fd_(std::move(other.fd_)), base_(std::exchange(other.base_, nullptr)), arena_bytes_(other.arena_bytes_) {}
  Board& operator=(Board&&) = delete;
  ~Board();

  BoardPage& page() const { return *reinterpret_cast<BoardPage*>(base_); }
  std::span<std::byte> arena() const { return {base_ + kArenaAt, arena_bytes_}; }
  /// Touches every page of the arena, so that raw loops meet no faults.
  void touch() const;
  int fd() const { return fd_.get(); }

 private:
  static constexpr std::uint64_t kArenaAt = 2u << 20;
  Board(base::Fd fd, std::byte* base, std::uint64_t arena_bytes)
      : fd_(std::move(fd)), base_(base), arena_bytes_(arena_bytes) {}
  static Result<Board> map(base::Fd fd, std::uint64_t arena_bytes);

  base::Fd fd_;
  std::byte* base_;
  std::uint64_t arena_bytes_;
};

}  // namespace hawser::cli::bench
