#include "runtime/closed_worlds.h"

#include <gtest/gtest.h>

namespace hawser::runtime {
namespace {

TEST(ClosedWorldsTest, RemembersTheLastOnes) {
  ClosedWorlds closed(2);
  EXPECT_FALSE(closed.contains(1));
  closed.add(1);
  closed.add(2);
  closed.add(2);
  EXPECT_TRUE(closed.contains(1));
  closed.add(3);
  EXPECT_FALSE(closed.contains(1));
  EXPECT_TRUE(closed.contains(2));
  EXPECT_TRUE(closed.contains(3));
}

}  // namespace
}  // namespace hawser::runtime
