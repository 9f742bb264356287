#include "backend/verbs/mock/planned_failures.h"

#include <gtest/gtest.h>

namespace hawser::backend::verbs {
namespace {

TEST(PlannedFailures, OneCallFailsAndTheNextWorks) {
  PlannedFailures failures;
  failures.fail("reg_mr", ENOMEM, 2);
  EXPECT_FALSE(failures.fails("reg_mr"));
  EXPECT_FALSE(failures.fails("create_qp"));
  EXPECT_TRUE(failures.fails("reg_mr"));
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_FALSE(failures.fails("reg_mr"));
}

TEST(PlannedFailures, OrAllOfThemUntilTheEnd) {
  PlannedFailures failures;
  failures.fail_always("poll_cq", EIO);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(failures.fails("poll_cq"));
  failures.clear();
  EXPECT_FALSE(failures.fails("poll_cq"));
}

}  // namespace
}  // namespace hawser::backend::verbs
