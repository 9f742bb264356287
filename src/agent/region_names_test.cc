#include "agent/region_names.h"

#include <gtest/gtest.h>

#include <vector>

namespace hawser::agent {
namespace {

std::vector<std::shared_ptr<backend::RegionEntry>> named(std::initializer_list<std::string> names) {
  std::vector<std::shared_ptr<backend::RegionEntry>> entries;
  for (const std::string& name : names) {
    entries.push_back(std::make_shared<backend::RegionEntry>());
    entries.back()->name = name;
  }
  return entries;
}

class RegionNamesTest : public testing::Test {
 protected:
  Status take(std::initializer_list<std::string> names) { return names_.take("add_region", named(names), &wrong_); }
  RegionNames names_;
  std::size_t wrong_ = 99;
};

TEST_F(RegionNamesTest, EachNameIsTakenOnce) {
  EXPECT_TRUE(take({"a", "b"}).ok());
  const Status refused = take({"a"});
  EXPECT_EQ(refused.code(), Code::kInvalid);
  EXPECT_NE(refused.to_string().find("add_region: there is a region 'a' already"), std::string::npos);
  names_.give_back("a");
  EXPECT_TRUE(take({"a"}).ok());
  names_.give_back(named({"a", "", "b"}));
  EXPECT_TRUE(take({"a", "b"}).ok());
}

TEST_F(RegionNamesTest, AnyNumberOfRegionsHasNoName) {
  EXPECT_TRUE(take({"", "", ""}).ok());
  EXPECT_TRUE(take({""}).ok());
}

TEST_F(RegionNamesTest, AllAreTakenOrNone) {
  EXPECT_FALSE(take({"a", "", "b", "a"}).ok());
  EXPECT_EQ(wrong_, 3u);
  EXPECT_TRUE(take({"a", "b"}).ok()) << "they are free again";
}

TEST_F(RegionNamesTest, OneThatWasTakenBeforeStaysTakenWhenALaterCallFails) {
  ASSERT_TRUE(take({"kept"}).ok());
  EXPECT_FALSE(take({"new", "kept"}).ok());
  EXPECT_EQ(wrong_, 1u);
  EXPECT_FALSE(take({"kept"}).ok());
}

TEST_F(RegionNamesTest, ANameHasAtMost255Bytes) {
  EXPECT_TRUE(take({std::string(255, 'x')}).ok());
  const Status refused = take({"a", std::string(256, 'y')});
  EXPECT_EQ(refused.code(), Code::kInvalid);
  EXPECT_NE(refused.to_string().find("256 bytes; at most 255"), std::string::npos) << refused.to_string();
  EXPECT_EQ(wrong_, 1u);
  EXPECT_TRUE(take({"a"}).ok());
}

}  // namespace
}  // namespace hawser::agent
