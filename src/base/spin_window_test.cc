#include "base/spin_window.h"

#include <gtest/gtest.h>

namespace hawser::base {
namespace {

using std::chrono::microseconds;

TEST(SpinWindow, ShortSleepsWidenItUpToItsMost) {
  SpinWindow spin(microseconds(50), microseconds(300));
  EXPECT_EQ(spin.window(), microseconds(50));
  for (const int expected : {100, 200, 300, 300}) {
    spin.slept(microseconds(150));
    EXPECT_EQ(spin.window(), microseconds(expected));
  }
}

TEST(SpinWindow, LongSleepsNarrowItDownToItsLeast) {
  SpinWindow spin(microseconds(50), microseconds(300));
  for (int i = 0; i < 3; ++i) spin.slept(microseconds(300));
  for (const int expected : {150, 75, 50, 50}) {
    spin.slept(microseconds(301));
    EXPECT_EQ(spin.window(), microseconds(expected));
  }
}

}  // namespace
}  // namespace hawser::base
