#include "base/line_gate.h"

#include <gtest/gtest.h>

#include <string>

namespace hawser::base {
namespace {

using namespace std::chrono_literals;

TEST(LineGate, OneOfAKindInASecond) {
  LineGate gate;
  const Instant begin = Instant() + 10s;
  EXPECT_EQ(gate.pass("descriptor 1 is not registered", begin), 0u);
  for (int i = 2; i < 1000; ++i) {
    EXPECT_FALSE(gate.pass("descriptor " + std::to_string(i) + " is not registered", begin + i * 1us));
  }
  EXPECT_EQ(gate.pass("another kind", begin), 0u);
  EXPECT_EQ(gate.pass("descriptor 7 is not registered", begin + 1s), 998u);
  EXPECT_EQ(gate.pass("descriptor 8 is not registered", begin + 2s), 0u);
}

TEST(LineGate, KindsByNumber) {
  LineGate gate;
  const Instant begin = Instant() + 10s;
  EXPECT_EQ(gate.pass_kind(0, begin), 0u);
  EXPECT_FALSE(gate.pass_kind(0, begin + 999ms));
  EXPECT_EQ(gate.pass_kind(1, begin), 0u);
  EXPECT_EQ(gate.pass_kind(0, begin + 1s), 1u);
}

TEST(LineGate, SoManyKindsInASecondAndNoMore) {
  LineGate gate;
  const Instant begin = Instant() + 10s;
  for (std::size_t i = 0; i < LineGate::kKinds; ++i) EXPECT_EQ(gate.pass(std::string(i, 'x'), begin + i * 1us), 0u);
  const std::string beyond(LineGate::kKinds, 'x');
  EXPECT_FALSE(gate.pass(beyond, begin + 999ms));
  EXPECT_EQ(gate.pass(beyond, begin + 1s), 0u);  // In the place of the oldest.
  EXPECT_FALSE(gate.pass("", begin + 1s)) << "all other kinds are of this second";
}

TEST(LineGate, TellsHowManyWereHeldBack) {
  EXPECT_EQ(LineGate::more(0), "");
  EXPECT_EQ(LineGate::more(3), " (and 3 more like it before)");
}

}  // namespace
}  // namespace hawser::base
