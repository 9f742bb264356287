#include "runtime/board_shelf.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "runtime/board.h"
#include "runtime/test_boards.h"

namespace hawser::runtime {
namespace {

class BoardShelfTest : public testing::Test {
 protected:
  Result<BoardShelf::Memory> allocate(std::size_t bytes) {
    if (fails_) return Status(Code::kBusy, "no descriptors");
    sizes_.push_back(bytes / kBoardBytes);
    struct Lines {
      alignas(kBoardLine) std::byte line[kBoardLine] = {};
    };
    const auto lines = std::make_shared<std::vector<Lines>>(bytes / kBoardLine);
    alive_.emplace_back(lines);
    return BoardShelf::Memory{.bytes = {lines->data()->line, bytes}, .owner = lines};
  }
  std::size_t regions() const {
    std::size_t count = 0;
    for (const auto& each : alive_) count += each.expired() ? 0U : 1U;
    return count;
  }

  bool fails_ = false;
  std::vector<std::size_t> sizes_;
  std::vector<std::weak_ptr<const void>> alive_;
  std::optional<BoardShelf> shelf_{[this](std::size_t bytes) { return allocate(bytes); }};
};

TEST_F(BoardShelfTest, AThousandBoardsLieInFewRegions) {
  std::vector<BoardShelf::Memory> taken;
  std::set<const std::byte*> places;
  for (int i = 0; i < 1000; ++i) {
    taken.push_back(shelf_->take().value());
    EXPECT_EQ(taken.back().bytes.size(), kBoardBytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(taken.back().bytes.data()) % kBoardLine, 0U);
    places.insert(taken.back().bytes.data());
  }
  EXPECT_EQ(places.size(), 1000U) << "each has its own";
  sizes_.resize(6);
  EXPECT_EQ(sizes_, (std::vector<std::size_t>{4, 8, 16, 32, 64, 64}));
  EXPECT_LE(regions(), 20U);
}

TEST_F(BoardShelfTest, APlaceThatIsGivenBackIsAsGoodAsNew) {
  BoardShelf::Memory first = shelf_->take().value();
  const std::byte* const place = first.bytes.data();
  {
    Board board(7, 0, 1, first.bytes, [](std::uint32_t) { return nullptr; });
    board.write(0, {.number = 1, .digest = 2, .bytes = {}});
    board.finish(0);
    board.ask();
  }
  first = {};
  const BoardShelf::Memory again = shelf_->take().value();
  ASSERT_EQ(again.bytes.data(), place);
  Board other(8, 0, 1, again.bytes, [](std::uint32_t) { return nullptr; });
  Board::Entry entry;
  EXPECT_EQ(other.look(0, 0, &entry), Board::Sight::kNotYet);
}

TEST_F(BoardShelfTest, WhoLooksAtAWorldBeforeSeesThatItIsGone) {
  BoardShelf::Memory first = shelf_->take().value();
  const std::byte* const place = first.bytes.data();
  {
    const Board board(7, 0, 2, first.bytes, [](std::uint32_t) { return nullptr; });
  }
  BoardMemory own;
  const Board reader(7, 1, 2, own.bytes, [&](std::uint32_t) { return place; });
  Board::Entry entry;
  EXPECT_EQ(reader.look(0, 0, &entry), Board::Sight::kNotYet);
  first = {};
  const BoardShelf::Memory again = shelf_->take().value();
  EXPECT_EQ(reader.look(0, 0, &entry), Board::Sight::kGone) << "nobody's yet";
  Board next(8, 0, 2, again.bytes, [](std::uint32_t) { return nullptr; });
  next.write(0, {.number = 1, .digest = 2, .bytes = {}});
  EXPECT_EQ(reader.look(0, 0, &entry), Board::Sight::kGone) << "another world's, which wrote for the same turn";
}

TEST_F(BoardShelfTest, RegionsStayAsLongAsAPlaceIsUsed) {
  BoardShelf::Memory taken = shelf_->take().value();
  shelf_.reset();
  EXPECT_EQ(regions(), 1U);
  taken = {};
  EXPECT_EQ(regions(), 0U);
}

TEST_F(BoardShelfTest, WithoutMemoryThereIsAnError) {
  fails_ = true;
  EXPECT_EQ(shelf_->take().error().code(), Code::kBusy);
  fails_ = false;
  EXPECT_TRUE(shelf_->take().has_value());
}

}  // namespace
}  // namespace hawser::runtime
