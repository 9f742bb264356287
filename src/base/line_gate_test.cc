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

TEST(LineGate, ManyKindsPushTheOldestOut) {
  LineGate gate;
  Instant at = Instant() + 10s;
  for (std::size_t i = 0; i <= LineGate::kKinds; ++i) EXPECT_EQ(gate.pass(std::string(i, 'x'), at = at + 1ns), 0u);
  EXPECT_FALSE(gate.pass(std::string(LineGate::kKinds, 'x'), at));
  EXPECT_EQ(gate.pass("", at), 0u);  // It had been forgotten.
}

}  // namespace
}  // namespace hawser::base
