#include "agent/region_extras.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace hawser::agent {
namespace {

using List = std::vector<std::pair<std::uint32_t, std::string>>;

List list_of(const RegionExtras& extras) {
  List found;
  extras.for_each([&](std::uint32_t backend, std::string_view bytes) { found.emplace_back(backend, bytes); });
  return found;
}

TEST(RegionExtras, GivesBackWhatWasAdded) {
  RegionExtras extras;
  EXPECT_TRUE(extras.empty());
  EXPECT_EQ(list_of(extras), List{});
  const std::string long_one(300, '\0');
  extras.add(7, "a");
  extras.add(1, long_one);
  extras.add(2, "");
  EXPECT_EQ(list_of(extras), (List{{7, "a"}, {1, long_one}, {2, ""}}));
  extras.replace(1, "b");
  extras.replace(2, "");
  EXPECT_EQ(list_of(extras), (List{{7, "a"}, {1, "b"}}));
  extras.clear();
  EXPECT_TRUE(extras.empty());
}

}  // namespace
}  // namespace hawser::agent
