// C19: a completion queue has room for all that its sharers can complete, and what is given back is used again.

#include "backend/verbs/queues/cq_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/verbs/mock/mock_objects.h"
#include "backend/verbs/mock/mock_verbs.h"

namespace hawser::backend::verbs {
namespace {

constexpr std::uint32_t kDepth = 33;

struct CqPoolTest : ::testing::Test {
  Result<std::unique_ptr<CqPool>> open(int max_cqe) {
    fabric.device("mock0").max_cqe = max_cqe;
    auto domain = Domain::open(std::make_shared<MockVerbs>(fabric), "mock0");
    EXPECT_TRUE(domain.has_value()) << (domain ? "" : domain.error().to_string());
    return CqPool::open(*domain, kDepth);
  }
  void TearDown() override { EXPECT_EQ(fabric.counts, MockCounts{}) << "something leaked"; }

  MockFabric fabric{{"mock0"}};
};

TEST_F(CqPoolTest, C19_AQueueHasRoomForAllOfItsSharers) {
  for (const int max_cqe : {33, 65, 66, 200, 1 << 16}) {
    auto pool = open(max_cqe);
    ASSERT_TRUE(pool.has_value()) << pool.error().to_string();
    std::map<ibv_cq*, int> sharers;
    std::vector<ibv_cq*> leased;
    for (int i = 0; i < 40; ++i) {
      auto cq = (*pool)->lease();
      ASSERT_TRUE(cq.has_value()) << cq.error().to_string();
      leased.push_back(*cq);
      ++sharers[*cq];
      ASSERT_GE((*cq)->cqe, sharers[*cq] * static_cast<int>(kDepth)) << max_cqe;
      ASSERT_LE((*cq)->cqe, max_cqe);
    }
    EXPECT_EQ((*pool)->count(), sharers.size());
    for (ibv_cq* cq : leased) (*pool)->give_back(cq);
    EXPECT_LE((*pool)->count(), 1u) << "one is kept for the next queue pair";
  }
}

TEST_F(CqPoolTest, C19_QueuesDouble) {
  auto pool = open(1 << 16);
  std::vector<ibv_cq*> leased;
  for (int i = 0; i < 2 + 4 + 8 + 16 + 1; ++i) leased.push_back((*pool)->lease().value());
  EXPECT_EQ((*pool)->count(), 5u);
  EXPECT_LT(leased.front()->cqe, 3 * static_cast<int>(kDepth)) << "the first costs little";
  for (ibv_cq* cq : leased) (*pool)->give_back(cq);
}

TEST_F(CqPoolTest, C19_WhatIsGivenBackIsLeasedAgain) {
  auto pool = open(2 * kDepth);
  ASSERT_TRUE(pool.has_value()) << pool.error().to_string();
  ibv_cq* const first = *(*pool)->lease();
  ibv_cq* const second = *(*pool)->lease();
  EXPECT_EQ(first, second);
  ibv_cq* const third = *(*pool)->lease();
  EXPECT_NE(third, first) << "the first has no room for a third";
  (*pool)->give_back(first);
  EXPECT_EQ(*(*pool)->lease(), first);
  EXPECT_EQ((*pool)->count(), 2u);
  (*pool)->give_back(third);
  EXPECT_EQ((*pool)->count(), 1u) << "a queue that nobody uses goes";
}

TEST_F(CqPoolTest, C19_ADeviceWithoutRoomForOneIsAnErrorWithBothNumbers) {
  const auto pool = open(kDepth - 1);
  ASSERT_FALSE(pool.has_value());
  EXPECT_EQ(pool.error().code(), Code::kUnsupported);
  const std::string text = pool.error().to_string();
  EXPECT_NE(text.find("32"), std::string::npos) << text;
  EXPECT_NE(text.find("33"), std::string::npos) << text;
  EXPECT_NE(text.find("send_depth"), std::string::npos) << text;
}

TEST_F(CqPoolTest, CompletionsOfOtherQueuesAreNotLostWhenOneBreaks) {
  auto pool = open(kDepth);  // One queue for each queue pair.
  ASSERT_TRUE(pool.has_value()) << pool.error().to_string();
  std::vector<ibv_cq*> leased = {*(*pool)->lease(), *(*pool)->lease()};
  std::array<ibv_wc, 8> out;
  for (std::size_t broken = 0; broken < 2; ++broken) {  // Whichever is polled first.
    for (std::uint64_t i = 0; i < 3; ++i) {
      ibv_wc wc{};
      wc.wr_id = i;
      cq_of(leased[1 - broken]).entries.push_back(wc);
    }
    cq_of(leased[broken]).overrun = true;
    int taken = 0, errors = 0;
    for (int i = 0; i < 4; ++i) {
      const int count = (*pool)->poll(out);
      errors += count < 0;
      taken += std::max(count, 0);
    }
    EXPECT_EQ(taken, 3);
    EXPECT_EQ(errors, 1) << "told once";
    EXPECT_TRUE((*pool)->is_broken(leased[broken]));
    EXPECT_FALSE((*pool)->is_broken(leased[1 - broken]));
    for (ibv_cq* cq : leased) (*pool)->give_back(cq);
    if (broken == 0) leased = {*(*pool)->lease(), *(*pool)->lease()};
  }
}

}  // namespace
}  // namespace hawser::backend::verbs
