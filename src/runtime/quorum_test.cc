#include "runtime/quorum.h"

#include <gtest/gtest.h>

namespace hawser::runtime {
namespace {

TEST(Quorum, MoreThanHalfOfThoseThatAreNotProvenDead) {
  const auto code = [](QuorumCount count) { return check_quorum(Quorum::kMajority, "w", count).code(); };
  EXPECT_EQ(code({.size = 4, .left = 2}), Code::kDenied);
  EXPECT_EQ(code({.size = 4, .left = 3}), Code::kOk);
  EXPECT_EQ(code({.size = 5, .left = 2}), Code::kDenied);
  EXPECT_EQ(code({.size = 5, .left = 3}), Code::kOk);
  EXPECT_EQ(code({.size = 4, .left = 2, .dead = 1}), Code::kOk) << "two of three";
  EXPECT_EQ(code({.size = 4, .left = 1, .dead = 2}), Code::kDenied) << "one of two";
  EXPECT_EQ(code({.size = 4, .left = 1, .dead = 3}), Code::kOk) << "the last one that lives";
}

TEST(Quorum, WithoutOneAnyNumberGoesOn) { EXPECT_TRUE(check_quorum(Quorum::kNone, "w", {.size = 9, .left = 1}).ok()); }

TEST(Quorum, TheRefusalSaysHowManyAreMissing) {
  const Status bad = check_quorum(Quorum::kMajority, "w", {.size = 6, .left = 2, .dead = 1});
  EXPECT_NE(bad.to_string().find("world 'w' has no quorum: 2 ranks are left of 5"), std::string::npos)
      << bad.to_string();
}

}  // namespace
}  // namespace hawser::runtime
