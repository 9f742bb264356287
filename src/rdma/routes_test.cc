#include "rdma/routes.h"

#include <gtest/gtest.h>

#include "base/inside.h"
#include "rdma/test_agent.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

class RoutesTest : public ::testing::Test {
 protected:
  TestOwner here_{"here"}, there_{"there"};
  Routes routes_{here_.agent, here_.self, here_.lent};
};

TEST_F(RoutesTest, ABufferOfThisProcessIsFoundUntilItIsReleased) {
  const RemoteBuffer made = here_.lend(7).value();
  const Found found = routes_.find(made).value();
  EXPECT_EQ(found.peer.name(), "here");
  EXPECT_TRUE(found.is_near);
  EXPECT_EQ(found.whole.size, made.size());
  here_.lender.release(core_of(made)->token, {.batch = batch_of(1), .peer = {}, .deadline = Instant::max()});
  const Status gone = routes_.find(made).error();
  EXPECT_EQ(gone.code(), Code::kNotFound);
  EXPECT_EQ(gone.buffer(), BufferState::kUntouched);
}

TEST_F(RoutesTest, AnotherOwnerIsMetByTheHandle) {
  const auto scratch = std::make_shared<MemoryCore>();
  std::array<std::byte, 8> bytes{};
  scratch->region = here_.agent.add_region({.bytes = bytes, .rights = Rights::kNone, .listed = false}).value();
  scratch->bytes = bytes;
  routes_.use_scratch(LocalMemory(scratch, 0, bytes.size()));
  const RemoteBuffer made = RemoteBuffer::decode(there_.lend(7).value().encode()).value();
  EXPECT_TRUE(here_.agent.peers().empty());
  const Found found = routes_.find(made).value();
  EXPECT_EQ(found.peer.name(), "there");
  EXPECT_EQ(found.engine, here_.self.number);
  EXPECT_EQ(found.whole.size, made.size());
  EXPECT_FALSE(found.is_near) << "no backend leads there";
  EXPECT_EQ(here_.agent.peers().size(), 1u);
  EXPECT_EQ(routes_.find(made)->peer.incarnation(), there_.agent.incarnation()) << "once more";
}

TEST_F(RoutesTest, AHandleWithoutAReadableCardLeadsNowhere) {
  auto core = std::make_shared<BufferCore>();
  core->card = "no card";
  EXPECT_EQ(routes_.find(RemoteBuffer(std::move(core), 0, 1)).error().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace rdma
HAWSER_NAMESPACE_END
