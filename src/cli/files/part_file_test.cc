#include "cli/files/part_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/test_folder.h"

namespace hawser::cli {
namespace {

class PartFileTest : public testing::Test {
 protected:
  static constexpr FileFacts kFive{.is_file = true, .size = 5, .mode = 0640, .mtime_ns = 1'234'567'890'123'456'789};

  Result<std::shared_ptr<PartFile>> open(bool make = true) const {
    base::Fd folder(::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return PartFile::open(std::move(folder), "file", "some/file", make);
  }
  void put(const std::string& name, const std::string& text) const { std::ofstream(folder_.path(name)) << text; }
  std::string get(const std::string& name) const {
    std::ifstream file(folder_.path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool is_there(const std::string& name) const { return std::filesystem::exists(folder_.path(name)); }

  const base::TestFolder folder_{"hawser-part"};
};

TEST_F(PartFileTest, IsCalledPartUntilItIsPublished) {
  const auto part = open().value();
  ASSERT_EQ(::pwrite(part->fd(), "hello, world", 12, 0), 12);
  EXPECT_TRUE(is_there("file.part"));
  EXPECT_FALSE(is_there("file"));
  EXPECT_TRUE(part->publish(kFive).ok());
  EXPECT_FALSE(is_there("file.part"));
  EXPECT_EQ(get("file"), "hello");
  const FileFacts facts = part->facts().value();
  EXPECT_EQ(facts.mode, 0640u);
  EXPECT_EQ(facts.mtime_ns, kFive.mtime_ns);
}

// Its source may be a file that others may not read, and a copy that broke leaves it lying there.
TEST_F(PartFileTest, IsItsOwnersAloneUntilItIsPublished) {
  const mode_t mask = ::umask(0);
  const auto part = open().value();
  ::umask(mask);
  EXPECT_EQ(part->facts().value().mode, 0600u);
  ASSERT_EQ(::pwrite(part->fd(), "hello", 5, 0), 5);
  EXPECT_TRUE(part->publish(kFive).ok());
  EXPECT_EQ(part->facts().value().mode, 0640u);
}

TEST_F(PartFileTest, ASecondCopyIsTold) {
  auto first = open().value();
  const Status second = open().error();
  EXPECT_EQ(second.code(), Code::kBusy);
  EXPECT_NE(second.to_string().find("another copy writes 'some/file.part'"), std::string::npos) << second.to_string();
  first.reset();
  EXPECT_TRUE(open().has_value());
}

TEST_F(PartFileTest, APublishedFileMakesRoomForTheNextPart) {
  const auto first = open().value();
  EXPECT_TRUE(first->publish({.is_file = true, .mode = 0600}).ok());
  EXPECT_TRUE(open().has_value());
}

TEST_F(PartFileTest, NothingIsPublishedThatWasNotWrittenHere) {
  EXPECT_EQ(open(false).error().code(), Code::kNotFound);
  {
    const auto removed = open().value();
    ASSERT_EQ(::pwrite(removed->fd(), "hello", 5, 0), 5);
    std::filesystem::remove(folder_.path("file.part"));
    EXPECT_NE(removed->publish(kFive).to_string().find("removed or replaced"), std::string::npos);
  }
  {
    const auto replaced = open().value();
    ASSERT_EQ(::pwrite(replaced->fd(), "hello", 5, 0), 5);
    put("other", "other");
    std::filesystem::rename(folder_.path("other"), folder_.path("file.part"));
    EXPECT_EQ(replaced->publish(kFive).code(), Code::kFailed);
  }
  {
    const auto cut = open().value();
    ASSERT_EQ(::ftruncate(cut->fd(), 4), 0);
    EXPECT_NE(cut->publish(kFive).to_string().find("4 bytes of 5"), std::string::npos);
  }
  EXPECT_FALSE(is_there("file"));
}

// A rename would replace it, and writes would reach a device.
TEST_F(PartFileTest, WhatIsNoFileKeepsItsPlace) {
  for (const std::string name : {"file", "file.part"}) {
    ASSERT_EQ(::mkfifo(folder_.path(name).c_str(), 0600), 0);
    const Status status = open().error();
    EXPECT_EQ(status.code(), Code::kInvalid) << name;
    EXPECT_NE(status.to_string().find("'some/" + name + "' is a FIFO"), std::string::npos) << status.to_string();
    std::filesystem::remove(folder_.path(name));
  }
  const auto part = open().value();
  ASSERT_EQ(::pwrite(part->fd(), "hello", 5, 0), 5);
  ASSERT_EQ(::mkfifo(folder_.path("file").c_str(), 0600), 0) << "it comes while the copy is under way";
  EXPECT_EQ(part->publish(kFive).code(), Code::kInvalid);
  EXPECT_TRUE(std::filesystem::is_fifo(folder_.path("file")));
  EXPECT_TRUE(is_there("file.part"));
}

TEST_F(PartFileTest, LinksAreNotFollowed) {
  put("target", "");
  std::filesystem::create_symlink(folder_.path("target"), folder_.path("file.part"));
  EXPECT_FALSE(open().has_value());
}

}  // namespace
}  // namespace hawser::cli
