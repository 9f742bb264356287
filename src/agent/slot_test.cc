#include "agent/slot.h"

#include <vector>

#include <gtest/gtest.h>

namespace hawser::agent {
namespace {

struct PoolTest : testing::Test {
  ~PoolTest() override {
    if (pool != nullptr) pool->orphan();
  }
  SlotPool* pool = new SlotPool(300);  // More than one segment.
};

TEST_F(PoolTest, HandsOutEachSlotOnceUpToItsLimit) {
  std::vector<Slot*> slots;
  while (Slot* slot = pool->take()) slots.push_back(slot);
  ASSERT_EQ(slots.size(), 300u);
  EXPECT_EQ(pool->in_use(), 300u);
  for (Slot* slot : slots) EXPECT_EQ(pool->at(slot->index), slot);
  for (Slot* slot : slots) {
    pool->finished(slot);
    pool->drop_handle(slot);
  }
  EXPECT_EQ(pool->in_use(), 0u);
}

TEST_F(PoolTest, ASlotIsFreeOnlyOnceItIsFinalAndItsHandleIsGone) {
  Slot* first = pool->take();
  pool->drop_handle(first);  // Dropped in flight.
  EXPECT_EQ(pool->in_use(), 1u);
  pool->finished(first);
  EXPECT_EQ(pool->in_use(), 0u);

  Slot* second = pool->take();
  pool->finished(second);
  EXPECT_EQ(second->phase.load(), Phase::kFinal);
  EXPECT_EQ(pool->in_use(), 1u);  // The status is still to be read.
  pool->drop_handle(second);
  EXPECT_EQ(pool->in_use(), 0u);
}

TEST_F(PoolTest, OutlivesItsAgentAsLongAsHandlesDo) {
  Slot* slot = pool->take();
  slot->status = Status(Code::kCancelled, "the agent was closed");
  pool->finished(slot);
  SlotPool* orphaned = std::exchange(pool, nullptr);
  orphaned->orphan();
  EXPECT_EQ(slot->status.code(), Code::kCancelled);
  orphaned->drop_handle(slot);  // The last handle takes the pool along; ASan sees what is left.
}

}  // namespace
}  // namespace hawser::agent
