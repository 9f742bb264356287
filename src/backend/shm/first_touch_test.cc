#include "backend/shm/first_touch.h"

#include <gtest/gtest.h>

#include <vector>

namespace hawser::backend::shm {
namespace {

constexpr std::uint64_t kWindow = FirstTouch::kWindow;

/// Memory that begins at the border of a window.
class FirstTouchTest : public ::testing::Test {
 protected:
  std::byte* base() {
    const auto start = reinterpret_cast<std::uintptr_t>(memory_.data());
    return memory_.data() + (kWindow - start % kWindow) % kWindow;
  }
  static Chunk chunk(Operation op, std::span<const Piece> pieces) {
    Chunk chunk{.op = op, .pieces = pieces};
    for (const Piece& piece : pieces) chunk.bytes += piece.size;
    return chunk;
  }
  std::vector<std::byte> memory_ = std::vector<std::byte>(33 * kWindow);
};

TEST_F(FirstTouchTest, CountsTheWindowsThatARegionTouches) {
  EXPECT_EQ(FirstTouch().left(), 0u);
  EXPECT_EQ(FirstTouch(base(), kWindow).left(), 1u);
  EXPECT_EQ(FirstTouch(base(), kWindow + 1).left(), 2u);
  EXPECT_EQ(FirstTouch(base() + kWindow - 1, 2).left(), 2u);
}

TEST_F(FirstTouchTest, OnceForEachWindowOfAWrite) {
  FirstTouch touch(base() + 100, 8 * kWindow - 100);
  const Piece pieces[] = {{nullptr, 0, 8}, {nullptr, 16, 8}, {nullptr, 3 * kWindow, 8}};
  touch.prepare(chunk(Operation::kRead, pieces), {}, 24);
  EXPECT_EQ(touch.left(), 8u);
  for (int i = 0; i < 2; ++i) {
    touch.prepare(chunk(Operation::kWrite, pieces), {}, 24);
    EXPECT_EQ(touch.left(), 6u);
  }
}

TEST_F(FirstTouchTest, StaysAheadOfTheFourRunsOfALargePiece) {
  FirstTouch touch(base(), 32 * kWindow);
  const Piece piece{nullptr, 0, 32 * kWindow};
  touch.prepare(chunk(Operation::kWrite, {&piece, 1}), {}, 32 * 1024);
  EXPECT_EQ(touch.left(), 32 - kCopyBlock / kWindow);
  touch.prepare(chunk(Operation::kWrite, {&piece, 1}), {.offset = 31 * kWindow, .done = 31 * kWindow}, 32 * 1024);
  EXPECT_EQ(touch.left(), 31 - kCopyBlock / kWindow);
}

TEST_F(FirstTouchTest, CoversFourPiecesThatAdvanceInStep) {
  FirstTouch touch(base(), 32 * kWindow);
  std::vector<Piece> pieces;
  for (std::uint64_t i = 0; i < 8; ++i) pieces.push_back({nullptr, i * 4 * kWindow, 2 * kWindow});
  touch.prepare(chunk(Operation::kWrite, pieces), {}, 4096);
  EXPECT_EQ(touch.left(), 32 - 8u);
}

}  // namespace
}  // namespace hawser::backend::shm
