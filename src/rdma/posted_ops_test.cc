#include "rdma/posted_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "backend/loopback/factory.h"
#include "rdma/test_agent.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

using std::chrono::seconds;

class PostedOpsTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kLarge = 8 << 20;  ///< Not over within submit, so it needs one of the agent's places.

  static Agent open() {
    AgentOptions options;
    options.name = "alone";
    options.limits.transfers = 1;
    return std::move(agent::open_with(std::move(options), {backend::loopback_factory()}).value());
  }
  Plan plan(std::size_t size) {
    const LocalRange from = source_.range(0, size);
    const RemoteRange to = agent_.self().range("target", 0, size);
    return agent_.plan_write(agent_.self(), {&from, 1}, {&to, 1}).value();
  }
  std::shared_ptr<BatchCore> prepare(std::size_t size, Duration timeout = seconds(1000)) {
    auto batch = batches_.make({}, 1, timeout);
    batch->with(0, [&](Item& item) {
      item.bytes = size;
      item.plan = plan(size);
    });
    return batch;
  }
  bool round() {
    (void)agent_.poll();
    bool moved = posted_.drain_queue();
    moved = posted_.post_waiting() || moved;
    return posted_.look_at_watched() || moved;
  }
  bool await(const BatchCore& batch) {
    for (int i = 0; i < 100'000 && !batch.done(); ++i) (void)round();
    return batch.done();
  }

  Agent agent_ = open();
  Region source_ = agent_.allocate({.name = "source", .size = kLarge}).value();
  Region target_ = agent_.allocate({.name = "target", .size = kLarge}).value();
  CompletionQueue queue_ = std::move(agent_.make_queue(16).value());
  EngineId self_{.number = 1, .incarnation = agent_.incarnation()};
  Ways ways_{agent_, self_};
  base::EventFd wake_ = std::move(base::EventFd::open().value());
  LiveBatches batches_;
  PostedOps posted_{{.agent = agent_, .queue = queue_, .batches = batches_, .ways = ways_, .wake = wake_}};
};

TEST_F(PostedOpsTest, ItEndsWithItsTransfer) {
  std::ranges::fill(source_.bytes(), std::byte{7});
  const auto batch = prepare(kLarge);
  posted_.post(batch, 0, false);
  ASSERT_TRUE(await(*batch));
  EXPECT_TRUE(batch->status().ok());
  EXPECT_EQ(batch->outcomes()[0].bytes, kLarge);
  EXPECT_EQ(target_.bytes()[kLarge - 1], std::byte{7});
}

TEST_F(PostedOpsTest, ANearOneIsWatchedWhereItIsNotOverAtOnce) {
  const auto batch = prepare(kLarge);
  posted_.post(batch, 0, true);
  EXPECT_EQ(posted_.has_watched(), !batch->done());
  ASSERT_TRUE(await(*batch));
  EXPECT_TRUE(batch->status().ok());
  EXPECT_FALSE(posted_.has_watched());
}

TEST_F(PostedOpsTest, OneWithoutRoomWaitsForIt) {
  const auto first = prepare(kLarge), second = prepare(kLarge);
  posted_.post(first, 0, false);
  posted_.post(second, 0, false);
  ASSERT_TRUE(posted_.has_waiting());
  EXPECT_TRUE(wake_.drain());
  EXPECT_FALSE(second->done());
  ASSERT_TRUE(await(*second));
  EXPECT_TRUE(first->status().ok());
  EXPECT_TRUE(second->status().ok());
  EXPECT_FALSE(posted_.has_waiting());
}

TEST_F(PostedOpsTest, OneThatWasCancelledOrIsLateIsNotPosted) {
  const auto cancelled = prepare(64), late = prepare(64, Duration::zero());
  cancelled->cancel();
  posted_.post(cancelled, 0, false);
  posted_.post(late, 0, false);
  EXPECT_EQ(cancelled->status().code(), Code::kCancelled);
  EXPECT_EQ(cancelled->status().buffer(), BufferState::kUntouched);
  EXPECT_EQ(late->status().code(), Code::kTimedOut);
  EXPECT_EQ(late->status().buffer(), BufferState::kUntouched);
}

TEST_F(PostedOpsTest, NothingWaitsOnceItIsCleared) {
  const auto first = prepare(kLarge), second = prepare(kLarge);
  posted_.post(first, 0, false);
  posted_.post(second, 0, false);
  posted_.clear();
  EXPECT_FALSE(posted_.has_waiting());
  ASSERT_TRUE(await(*first));
  EXPECT_FALSE(second->done());
}

}  // namespace
}  // namespace rdma
HAWSER_NAMESPACE_END
