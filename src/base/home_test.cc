#include "base/home.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/test_folder.h"

namespace hawser::base {
namespace {

namespace fs = std::filesystem;

class HomeTest : public testing::Test {
 protected:
  HomeSearch search(std::vector<std::string> wanted) const {
    for (std::string& each : wanted) each = root_.path() + "/" + each;
    return {.wanted = std::move(wanted), .common = root_.path(), .user = 77};
  }

  const TestFolder root_;
};

TEST_F(HomeTest, TheFirstThatWillDoIsTaken) {
  const HomeSearch three = search({"no/such/place", "first", "second"});
  EXPECT_TRUE(existing_homes(three).empty());
  const Home home = choose_home(three).value();
  EXPECT_EQ(home.folder, three.wanted[1]);
  EXPECT_EQ(existing_homes(three), std::vector{home.folder});
  EXPECT_EQ(home.warning, "");
  struct stat made {};
  ASSERT_EQ(::stat(home.folder.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0700u);
  EXPECT_EQ(choose_home(three).value().folder, home.folder);
}

// Another user made something of that name before its owner came: shm goes on in a private folder, and says so.
TEST_F(HomeTest, ASquattedNameIsPassedOverWithAWarning) {
  const HomeSearch only = search({"hawser-77"});
  std::ofstream(only.wanted[0]) << "squatted";
  const Home home = choose_home(only).value();
  EXPECT_TRUE(home.folder.starts_with(root_.path() + "/hawser-77-")) << home.folder;
  EXPECT_NE(home.warning.find(only.wanted[0]), std::string::npos) << home.warning;
  EXPECT_TRUE(prepare_folder(home.folder).ok());
  // All agents of this user share it, and one that others may enter is not taken for it.
  EXPECT_EQ(choose_home(only).value().folder, home.folder);
  ASSERT_EQ(::chmod(home.folder.c_str(), 0777), 0);
  const Home other = choose_home(only).value();
  EXPECT_NE(other.folder, home.folder);
  EXPECT_EQ(existing_homes(only), std::vector{other.folder});
  EXPECT_TRUE(prepare_folder(other.folder).ok());
}

TEST_F(HomeTest, AnotherUsersFolderIsPassedOver) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const HomeSearch only = search({"hawser-77"});
  fs::create_directory(only.wanted[0]);
  ASSERT_EQ(::chown(only.wanted[0].c_str(), 12345, 12345), 0);
  ASSERT_EQ(::chmod(only.wanted[0].c_str(), 0700), 0);
  const Home home = choose_home(only).value();
  EXPECT_NE(home.folder, only.wanted[0]);
  EXPECT_NE(home.warning.find("12345"), std::string::npos) << home.warning;
}

TEST_F(HomeTest, ALongPathIsPassedOver) {
  const HomeSearch two = search({std::string(100, 'x'), "short"});
  EXPECT_EQ(choose_home(two).value().folder, two.wanted[1]);
}

TEST_F(HomeTest, TheUsersRuntimeFolderComesFirst) {
  EXPECT_EQ(usual_homes(root_.path()).wanted.at(0), root_.path() + "/hawser");
  EXPECT_EQ(usual_homes("relative").wanted.size(), 2u);
  EXPECT_EQ(usual_homes("").wanted.size(), 2u);
}

}  // namespace
}  // namespace hawser::base
