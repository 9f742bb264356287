#include "base/log_gate.h"

#include <gtest/gtest.h>

namespace hawser::base {
namespace {

using namespace std::chrono_literals;

TEST(LogGate, OpensOncePerKindAndSecondAndCountsTheOthers) {
  LogGate gate;
  Instant now = Instant::from_ns(1);
  std::string more;
  int lines = 0;
  for (int i = 0; i < 1000; ++i, now = now + 2ms) lines += gate.opens(3, now, &more) ? 1 : 0;
  EXPECT_EQ(lines, 2);
  EXPECT_EQ(more, " (and 499 more like it before)");
  EXPECT_TRUE(gate.opens(4, now, &more)) << "another kind has a line of its own";
  EXPECT_EQ(more, "");
}

}  // namespace
}  // namespace hawser::base
