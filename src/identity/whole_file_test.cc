#include "identity/whole_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "base/test_folder.h"
#include "identity/test_authority.h"

namespace hawser::identity {
namespace {

TEST(WholeFile, IsReplacedInOnePieceWithItsMode) {
  base::TestFolder folder;
  const std::string path = folder.path("a");
  ASSERT_TRUE(write_whole_file(path, "first", 0644).ok());
  ASSERT_TRUE(write_whole_file(path, "second", 0600).ok());
  EXPECT_EQ(read_whole_file(path, 6).value_or(""), "second");
  EXPECT_EQ(read_whole_file(path, 5).error().code(), Code::kInvalid);
  struct stat facts = {};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path("")), {}), 1);
}

TEST(WholeFile, WithoutAModeTheUmaskCounts) {
  base::TestFolder folder;
  const mode_t before = ::umask(027);
  const Status status = write_whole_file(folder.path("a"), "text");
  ::umask(before);
  ASSERT_TRUE(status.ok()) << status.to_string();
  struct stat facts = {};
  ASSERT_EQ(::stat(folder.path("a").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0640u);
}

// `--output /dev/null` of who may write in /dev would take it from everybody.
TEST(WholeFile, TakesThePlaceOfFilesOnly) {
  base::TestFolder folder;
  ASSERT_EQ(::mkfifo(folder.path("fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/null", folder.path("null"));
  for (const char* name : {"fifo", "null"}) EXPECT_EQ(write_whole_file(folder.path(name), "x").code(), Code::kInvalid);
  EXPECT_TRUE(std::filesystem::is_fifo(folder.path("fifo")));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("null")));
}

TEST(WholeFile, FailsWithThePath) {
  base::TestFolder folder;
  EXPECT_NE(write_whole_file(folder.path("no/such"), "x", 0600).to_string().find("no/such"), std::string::npos);
  EXPECT_EQ(read_whole_file(folder.path("none"), 10).error().code(), Code::kNotFound);
  EXPECT_EQ(read_whole_file(folder.path(""), 10).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hawser::identity
