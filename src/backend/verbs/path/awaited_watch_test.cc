#include "backend/verbs/path/awaited_watch.h"

#include <gtest/gtest.h>

namespace hawser::backend::verbs {
namespace {

const Instant kAwaitedAt = Instant::min() + std::chrono::seconds(1000);

TEST(AwaitedWatch, ThatSomebodyWaitsIsToldAtOnce) {
  AwaitedWatch watch;
  ASSERT_TRUE(watch.is_due(kAwaitedAt));
  EXPECT_TRUE(watch.look(true, kAwaitedAt));
  EXPECT_TRUE(watch.is_told());
  EXPECT_FALSE(watch.look(true, kAwaitedAt + AwaitedWatch::kRest)) << "it was told";
}

TEST(AwaitedWatch, ThatNobodyDoesIsToldAfterARest) {
  AwaitedWatch watch;
  watch.look(true, kAwaitedAt);
  EXPECT_EQ(watch.next_look(), kAwaitedAt + AwaitedWatch::kRest);
  EXPECT_FALSE(watch.is_due(kAwaitedAt + AwaitedWatch::kRest - Duration(1)));
  ASSERT_TRUE(watch.is_due(kAwaitedAt + AwaitedWatch::kRest));
  EXPECT_TRUE(watch.look(false, kAwaitedAt + AwaitedWatch::kRest));
  EXPECT_FALSE(watch.is_told());
  EXPECT_EQ(watch.next_look(), Instant::max());
}

TEST(AwaitedWatch, NoLookIsDueWhileTheAgentItselfWaits) {
  AwaitedWatch watch;
  EXPECT_FALSE(watch.set_agent_waits(true, kAwaitedAt)) << "who says so looks at once";
  EXPECT_TRUE(watch.look(watch.agent_waits(), kAwaitedAt));
  EXPECT_EQ(watch.next_look(), Instant::max());
  EXPECT_TRUE(watch.set_agent_waits(false, kAwaitedAt)) << "a look is due after a rest";
  EXPECT_EQ(watch.next_look(), kAwaitedAt + AwaitedWatch::kRest);
  EXPECT_FALSE(watch.set_agent_waits(false, kAwaitedAt + Duration(1))) << "it was due already";
  EXPECT_EQ(watch.next_look(), kAwaitedAt + AwaitedWatch::kRest);
}

TEST(AwaitedWatch, NothingIsDueOfAnAgentThatNeverWaited) {
  AwaitedWatch watch;
  EXPECT_FALSE(watch.set_agent_waits(false, kAwaitedAt));
  EXPECT_EQ(watch.next_look(), Instant::max());
  EXPECT_FALSE(watch.look(false, kAwaitedAt));
}

}  // namespace
}  // namespace hawser::backend::verbs
