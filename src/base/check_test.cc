#include "base/check.h"

#include <gtest/gtest.h>

namespace hawser::base {
namespace {

TEST(CheckDeathTest, SaysWhereAndWhat) {
  const int value = 3;
  HAWSER_ASSERT(value == 3, "never seen");
  EXPECT_DEATH(HAWSER_ASSERT(value == 4, "three is not four"), "check_test.cc:[0-9]+: three is not four .value == 4.");
}

}  // namespace
}  // namespace hawser::base
