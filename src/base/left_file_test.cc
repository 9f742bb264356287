#include "base/left_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>

#include "base/test_folder.h"

namespace hawser::base {
namespace {

class LeftFileTest : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 8192, kMapped = 4096;

  LeftFile create(const std::string& name) {
    return LeftFile::create(folder_.path(), name, {.suffix = ".left", .bytes = kBytes, .mapped = kMapped}).value();
  }
  std::string path(const std::string& name) const { return folder_.path(name + ".left"); }
  bool is_there(const std::string& name) const { return ::access(path(name).c_str(), F_OK) == 0; }
  /// By a process that dies, so long ago.
  void leave_behind(const std::string& name, std::time_t seconds_ago) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto file = LeftFile::create(folder_.path(), name, {.suffix = ".left", .bytes = kBytes, .mapped = kMapped});
      if (!file) ::_exit(1);
      std::memcpy(file->memory().data(), "last words", 10);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    const timespec then{std::time(nullptr) - seconds_ago, 0};
    const std::array<timespec, 2> times{then, then};
    ASSERT_EQ(::utimensat(AT_FDCWD, path(name).c_str(), times.data(), 0), 0);
  }

  TestFolder folder_;
};

TEST_F(LeftFileTest, IsTheUsersAloneAndGoesWithItsObject) {
  {
    const LeftFile file = create("one");
    struct stat found {};
    ASSERT_EQ(::stat(path("one").c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777, 0600u);
    EXPECT_EQ(found.st_size, static_cast<off_t>(kBytes));
    EXPECT_EQ(list_left_files(folder_.path(), ".left"), std::vector{path("one")});
    const Fd reader = open_left_file(path("one"), kBytes).value();
    EXPECT_FALSE(is_left(reader.get()));
    std::memcpy(file.memory().data(), "word", 4);
    std::array<char, 4> word{};
    ASSERT_TRUE(read_exactly(reader.get(), word.data(), word.size(), 0));
    EXPECT_EQ(std::string(word.data(), word.size()), "word");
  }
  EXPECT_FALSE(is_there("one"));
}

TEST_F(LeftFileTest, OfOneNameThereIsOne) {
  const LeftFile file = create("one");
  EXPECT_FALSE(
      LeftFile::create(folder_.path(), "one", {.suffix = ".left", .bytes = kBytes, .mapped = kMapped}).has_value());
}

TEST_F(LeftFileTest, StaysWhereItWasLeft) {
  std::optional<LeftFile> file = create("one");
  const Fd reader = open_left_file(path("one"), kBytes).value();
  file->leave();
  EXPECT_TRUE(is_left(reader.get()));
  file.reset();
  EXPECT_TRUE(is_there("one"));
}

// A worker that was forked lives on. The lock must be the parent's alone.
TEST_F(LeftFileTest, AForkedChildDoesNotKeepItsParentAlive) {
  std::array<int, 2> ends{}, done{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_EQ(::pipe(done.data()), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    auto file = LeftFile::create(folder_.path(), "one", {.suffix = ".left", .bytes = kBytes, .mapped = kMapped});
    if (!file) ::_exit(1);
    if (::fork() == 0) {
      file->disown_after_fork();
      ::close(ends[1]);
      char byte = 0;
      (void)!::write(done[1], &byte, 1);
      (void)!::read(ends[0], &byte, 1);  // Until the test has looked.
      ::_exit(0);
    }
    char byte = 0;
    ::_exit(::read(done[0], &byte, 1) == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  ASSERT_EQ(status, 0);
  const Fd reader = open_left_file(path("one"), kBytes).value();
  EXPECT_TRUE(is_left(reader.get()));
  for (const int each : {ends[0], ends[1], done[0], done[1]}) ::close(each);
}

TEST_F(LeftFileTest, ANewcomerRemovesWhatIsOld) {
  leave_behind("young", 3590);
  leave_behind("old", 3610);
  const LeftFile file = create("new");
  EXPECT_TRUE(is_there("young"));
  EXPECT_FALSE(is_there("old"));
}

TEST_F(LeftFileTest, WhatWasTouchedIsTheShapesToSay) {
  leave_behind("old", 7200);
  const auto touched = [](int, const struct stat&) { return std::time(nullptr) - 10; };
  const auto file = LeftFile::create(folder_.path(), "new",
                                     {.suffix = ".left", .bytes = kBytes, .mapped = kMapped, .touched = touched});
  ASSERT_TRUE(file.has_value()) << file.error().to_string();
  EXPECT_TRUE(is_there("old"));
}

TEST_F(LeftFileTest, AnotherSizeIsCorrupt) {
  const LeftFile file = create("one");
  EXPECT_EQ(open_left_file(path("one"), kBytes - 1).error().code(), Code::kCorrupt);
  EXPECT_EQ(open_left_file(path("one"), kBytes + 1).error().code(), Code::kCorrupt);
  EXPECT_EQ(open_left_file(folder_.path(), kBytes).error().code(), Code::kCorrupt);
  EXPECT_EQ(open_left_file(path("none"), kBytes).error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace hawser::base
