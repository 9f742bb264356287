#include "compat/lapsed_names.h"

#include <gtest/gtest.h>

#include <string>

namespace hawser::compat {
namespace {

TEST(LapsedNames, ANameIsTakenOnce) {
  LapsedNames names;
  EXPECT_FALSE(names.take("a"));
  names.add("a");
  names.add("a");
  EXPECT_TRUE(names.take("a"));
  EXPECT_FALSE(names.take("a"));
}

TEST(LapsedNames, AreBounded) {
  LapsedNames names;
  for (std::size_t i = 0; i < 2 * LapsedNames::kNamesMax; ++i) names.add(std::to_string(i));
  std::size_t known = 0;
  for (std::size_t i = 0; i < 2 * LapsedNames::kNamesMax; ++i) known += names.take(std::to_string(i));
  EXPECT_EQ(known, LapsedNames::kNamesMax);
}

}  // namespace
}  // namespace hawser::compat
