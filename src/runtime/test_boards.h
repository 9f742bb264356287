#pragma once

// For tests: boards of ranks that are all in this process.
//
// Thread rule: the test's thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "runtime/board.h"

namespace hawser::runtime {

/// Room for one rank's board.
struct alignas(kBoardLine) BoardMemory {
  std::array<std::byte, kBoardBytes> bytes{};
};

/// By rank: the boards of one world. They look at each other.
class TestBoards {
 public:
  explicit TestBoards(std::uint32_t ranks) : memories_(ranks) { open(); }
  TestBoards(const TestBoards&) = delete;
  TestBoards& operator=(const TestBoards&) = delete;

  /// New ones in the place of those that there are.
  void open() {
    boards_.clear();
    const auto ranks = static_cast<std::uint32_t>(memories_.size());
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      Board::wipe(memories_[rank].bytes);
      boards_.push_back(std::make_unique<Board>(7, rank, ranks, memories_[rank].bytes, [this](std::uint32_t other) {
        ++looks;
        return other == gone ? nullptr : memories_[other].bytes.data();
      }));
    }
  }
  Board& operator[](std::size_t rank) { return *boards_[rank]; }
  /// All ranks read nothing of these turns any more.
  void finish(std::uint64_t turn, std::uint64_t count = 1) {
    for (const auto& board : boards_) board->finish(turn, count);
  }

  static constexpr std::uint32_t kNone = 99;
  std::uint64_t looks = 0;     ///< So often some rank looked at another one's.
  std::uint32_t gone = kNone;  ///< The others cannot read this rank's board.

 private:
  std::deque<BoardMemory> memories_;
  std::vector<std::unique_ptr<Board>> boards_;
};

}  // namespace hawser::runtime
