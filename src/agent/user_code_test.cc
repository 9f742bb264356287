#include "agent/user_code.h"

#include <gtest/gtest.h>

#include <thread>

namespace hawser::agent {
namespace {

TEST(UserCode, RunsOnTheThreadThatBeganItUntilItEnds) {
  UserCode code;
  EXPECT_FALSE(code.runs_here());
  code.begin();
  EXPECT_TRUE(code.runs_here());
  bool elsewhere = true;
  std::thread([&] { elsewhere = code.runs_here(); }).join();
  EXPECT_FALSE(elsewhere);
  code.end();
  EXPECT_FALSE(code.runs_here());
}

}  // namespace
}  // namespace hawser::agent
