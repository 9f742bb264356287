#include "agent/unsent_messages.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hawser::agent {
namespace {

LeftOver left_on(std::uint32_t channel, const std::string& bytes) {
  return {.bytes = bytes, .channel = channel, .priority = Priority::kRealtime};
}

TEST(UnsentMessages, EachLinkKeepsItsOrderAndHoldsNoOtherOneBack) {
  constexpr std::uint32_t kFull = 16, kFree = 17;
  UnsentMessages unsent;
  EXPECT_TRUE(unsent.empty());
  for (const char* const bytes : {"1", "2"}) {
    unsent.push(left_on(kFull, bytes));
    unsent.push(left_on(kFree, bytes));
  }
  EXPECT_EQ(unsent.count(), 4u);
  std::vector<std::string> offered;
  const auto only_free = [&](const LeftOver& left) {
    offered.push_back(std::to_string(left.channel) + ":" + left.bytes);
    return left.channel == kFree;
  };
  EXPECT_EQ(unsent.offer(only_free), 2u);
  EXPECT_EQ(offered, (std::vector<std::string>{"16:1", "17:1", "17:2"})) << "the full one is asked once";
  EXPECT_FALSE(unsent.has_none({Priority::kRealtime, kFull}));
  EXPECT_TRUE(unsent.has_none({Priority::kRealtime, kFree}));
  EXPECT_TRUE(unsent.has_none({Priority::kRealtime, kFull + 2})) << "of another group";
  EXPECT_EQ(unsent.offer([](const LeftOver&) { return true; }), 2u);
  EXPECT_TRUE(unsent.empty());
}

TEST(UnsentMessages, NothingIsLeftOnceItIsCleared) {
  UnsentMessages unsent;
  unsent.push(left_on(16, "a"));
  unsent.clear();
  EXPECT_TRUE(unsent.empty());
  EXPECT_EQ(unsent.count(), 0u);
  unsent.push(left_on(16, "b"));
  EXPECT_EQ(unsent.count(), 1u);
}

}  // namespace
}  // namespace hawser::agent
