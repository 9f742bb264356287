#include "rdma/held_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/inside.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

class HeldMemoryTest : public ::testing::Test {
 protected:
  /// Memory without a region, so its end closes none.
  std::shared_ptr<MemoryCore> hold(std::size_t begin, std::size_t size, bool writable = true) {
    auto core = std::make_shared<MemoryCore>();
    core->bytes = std::span(memory_).subspan(begin, size);
    core->writable = writable;
    held_.add(core);
    return core;
  }
  LocalMemory part(std::size_t begin, std::size_t size, bool writable = true) {
    return held_.part_of(std::span(memory_).subspan(begin, size), owner_, writable, {});
  }

  std::array<std::byte, 1000> memory_{};
  std::shared_ptr<const void> owner_ = std::make_shared<int>();
  HeldMemory held_;
};

TEST_F(HeldMemoryTest, APartIsFoundAndNotAByteBeyond) {
  const auto core = hold(100, 50);
  EXPECT_TRUE(part(100, 50).valid());
  EXPECT_TRUE(part(149, 1).valid());
  EXPECT_FALSE(part(99, 2).valid());
  EXPECT_FALSE(part(149, 2).valid());
  EXPECT_FALSE(part(150, 1).valid());
  EXPECT_FALSE(part(100, 0).valid()) << "no bytes are no part";
  const LocalMemory some = part(110, 20);
  EXPECT_EQ(some.bytes().data(), memory_.data() + 110);
  EXPECT_EQ(some.size(), 20u);
}

TEST_F(HeldMemoryTest, APartHoldsTheWholeAndItsOwnOwner) {
  std::weak_ptr<MemoryCore> core;
  const std::weak_ptr<const void> owner = owner_;
  LocalMemory some;
  {
    const auto made = hold(0, 100);
    core = made;
    some = part(10, 10);
  }
  owner_.reset();
  EXPECT_FALSE(core.expired() || owner.expired());
  some = {};
  EXPECT_TRUE(core.expired());
  EXPECT_TRUE(owner.expired());
}

TEST_F(HeldMemoryTest, WhatIsGoneOrOfAnotherKindIsNoPart) {
  hold(0, 100);
  EXPECT_FALSE(part(0, 100).valid()) << "nobody holds it";
  const auto core = hold(0, 100, false);
  EXPECT_FALSE(part(0, 100).valid());
  EXPECT_TRUE(part(0, 100, false).valid());
  EXPECT_FALSE(held_.part_of(std::span(memory_).first(100), owner_, false, {.kind = DeviceKind::kCuda}).valid());
}

TEST_F(HeldMemoryTest, ALargerOneBehindOthersIsFound) {
  const auto large = hold(0, 1000);
  std::vector<std::shared_ptr<MemoryCore>> small;
  for (std::size_t i = 0; i < 10; ++i) small.push_back(hold(i, 1));
  EXPECT_TRUE(part(500, 100).valid());
}

TEST_F(HeldMemoryTest, EntriesThatAreGoneDoNotPileUp) {
  for (std::size_t i = 0; i < 1000; ++i) hold(i, 1);
  EXPECT_LE(held_.size(), 64u);
  std::vector<std::shared_ptr<MemoryCore>> kept;
  for (std::size_t i = 0; i < 200; ++i) kept.push_back(hold(i, 1));
  EXPECT_GE(held_.size(), 200u);
}

}  // namespace
}  // namespace rdma
HAWSER_NAMESPACE_END
