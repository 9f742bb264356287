#include "fileio/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/test_folder.h"

namespace hawser::fileio {
namespace {

class Files : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }
  base::Fd make(const std::string& name, int flags, std::string_view text = {}) const {
    base::Fd fd(::open(path(name).c_str(), flags | O_CREAT | O_CLOEXEC, 0600));
    if (!text.empty()) {
      EXPECT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    return fd;
  }

  const base::TestFolder folder_{"hawser-file"};
};

TEST_F(Files, PathsAreOpenedForTheirRights) {
  static_cast<void>(make("one", O_RDWR, "text"));
  const auto file = File::open({.path = path("one"), .rights = Rights::kRead}).value();
  EXPECT_EQ(::fcntl(file->buffered(), F_GETFL) & O_ACCMODE, O_RDONLY);
  EXPECT_EQ(file->name(), path("one"));
  EXPECT_EQ(::fcntl(file->buffered(), F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(Files, MissingOnesAreMadeWhenAskedFor) {
  EXPECT_EQ(File::open({.path = path("none")}).error().code(), Code::kNotFound);
  EXPECT_TRUE(File::open({.path = path("none"), .create = true}).has_value());
  EXPECT_TRUE(query_file(path("none")).value().exists);
}

TEST_F(Files, WhatIsNoFileIsRefusedByName) {
  const Status folder = File::open({.path = folder_.path(), .rights = Rights::kRead}).error();
  EXPECT_EQ(folder.code(), Code::kInvalid);
  EXPECT_NE(folder.message().find("directory"), std::string::npos);
  EXPECT_EQ(File::open({.path = folder_.path()}).error().code(), Code::kInvalid);
  EXPECT_EQ(File::open({.descriptor = 1 << 20}).error().code(), Code::kInvalid);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const base::Fd read_end(ends[0]), write_end(ends[1]);
  EXPECT_NE(File::open({.descriptor = ends[0], .rights = Rights::kRead}).error().message().find("a pipe"),
            std::string::npos);
  const base::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(File::open({.descriptor = socket.get()}).error().code(), Code::kInvalid);
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(File::open({.path = path("fifo"), .rights = Rights::kRead}).error().code(), Code::kInvalid);
}

TEST_F(Files, ThereIsOneWayToNameAFile) {
  const base::Fd fd = make("one", O_RDWR);
  EXPECT_EQ(File::open({}).error().code(), Code::kInvalid);
  EXPECT_EQ(File::open({.descriptor = fd.get(), .path = path("one")}).error().code(), Code::kInvalid);
  EXPECT_EQ(File::open({.path = path("one"), .rights = Rights::kNone}).error().code(), Code::kInvalid);
  EXPECT_EQ(File::open({.path = std::string("a\0b", 3)}).error().code(), Code::kInvalid);
}

TEST_F(Files, DescriptorsMustAllowTheRights) {
  static_cast<void>(make("one", O_RDWR));
  const base::Fd reader = make("one", O_RDONLY);
  EXPECT_EQ(File::open({.descriptor = reader.get()}).error().code(), Code::kInvalid);
  EXPECT_TRUE(File::open({.descriptor = reader.get(), .rights = Rights::kRead}).has_value());
}

TEST_F(Files, FlagsOfADescriptorThatWouldChangeTransfersAreLeftBehind) {
  const base::Fd fd = make("one", O_RDWR | O_APPEND | O_NONBLOCK);
  const auto file = File::open({.descriptor = fd.get()}).value();
  EXPECT_EQ(::fcntl(file->buffered(), F_GETFL) & (O_APPEND | O_NONBLOCK), 0);
  EXPECT_EQ(file->direct(), -1);
}

TEST_F(Files, WhatADescriptorWritesThroughIsWrittenThrough) {
  for (const int flag : {O_DSYNC, O_SYNC, O_SYNC | O_DIRECT}) {
    const base::Fd fd = make("one", O_RDWR | flag);
    if (!fd) continue;  // No direct I/O here.
    for (const DirectIo direct : {DirectIo::kAuto, DirectIo::kOff}) {
      const auto file = File::open({.descriptor = fd.get(), .direct = direct}).value();
      for (const int its : {file->buffered(), file->direct()}) {
        if (its < 0) continue;
        EXPECT_EQ(::fcntl(its, F_GETFL) & O_SYNC, flag & O_SYNC);
      }
    }
  }
}

TEST_F(Files, AnUnlinkedFileIsStillAFile) {
  const base::Fd fd = make("one", O_RDWR);
  std::filesystem::remove(path("one"));
  EXPECT_TRUE(File::open({.descriptor = fd.get()}).has_value());
}

TEST_F(Files, DirectOnlyWhereTheFileSystemHasIt) {
  static_cast<void>(make("one", O_RDWR, std::string(10000, 'x')));
  const auto off = File::open({.path = path("one"), .direct = DirectIo::kOff}).value();
  EXPECT_EQ(off->direct(), -1);
  const auto automatic = File::open({.path = path("one")}).value();
  const auto required = File::open({.path = path("one"), .direct = DirectIo::kRequire});
  EXPECT_EQ(required.has_value(), automatic->direct() >= 0);
  if (!required) {
    EXPECT_EQ(required.error().code(), Code::kUnsupported);
    GTEST_SKIP() << "the temporary folder's file system has no direct I/O";
  }
  EXPECT_GT(automatic->alignment().offset, 0u);
  EXPECT_EQ(automatic->alignment().offset & (automatic->alignment().offset - 1), 0u);
  automatic->direct_failed();
  EXPECT_EQ(automatic->direct(), -1);
}

TEST_F(Files, WithoutTheKernelsWordTheAlignmentIsSafe) {
  static_cast<void>(make("one", O_RDWR, std::string(10000, 'x')));
  for (const int access : {O_RDWR, O_RDONLY, O_WRONLY}) {
    const base::Fd fd(::open(path("one").c_str(), access | O_DIRECT | O_CLOEXEC));
    if (!fd) GTEST_SKIP() << "the temporary folder's file system has no direct I/O";
    const Alignment told = find_alignment(fd.get()), found = try_alignment(fd.get());
    if (told.offset == 0) GTEST_SKIP() << "the temporary folder's file system has no direct I/O";
    ASSERT_GT(found.offset, 0u) << access;
    EXPECT_EQ(found.offset % told.offset, 0u) << access << ": " << found.offset << " for " << told.offset;
    EXPECT_EQ(found.memory % told.memory, 0u) << access << ": " << found.memory << " for " << told.memory;
  }
}

TEST_F(Files, AFileSystemWithoutDirectIoIsNamed) {
  const FileOptions kernel_file{.path = "/proc/version", .rights = Rights::kRead, .direct = DirectIo::kAuto};
  EXPECT_EQ(File::open(kernel_file).value()->direct(), -1);
  FileOptions required = kernel_file;
  required.direct = DirectIo::kRequire;
  const Status why = File::open(required).error();
  EXPECT_EQ(why.code(), Code::kUnsupported);
  for (const char* part : {"/proc/version", "O_DIRECT", "DirectIo::kAuto"}) {
    EXPECT_NE(why.to_string().find(part), std::string::npos) << why.to_string();
  }
}

TEST_F(Files, QueriesAnswer) {
  const base::Fd fd = make("one", O_RDWR, "text");
  const FileInfo by_path = query_file(path("one")).value();
  EXPECT_TRUE(by_path.exists);
  EXPECT_EQ(by_path.size, 4u);
  EXPECT_EQ(by_path.mode, static_cast<std::uint32_t>(S_IFREG | 0600));
  EXPECT_GT(by_path.mtime_ns, 0);
  EXPECT_EQ(query_file(fd.get()).value().size, 4u);
  EXPECT_FALSE(query_file(path("none")).value().exists);
  EXPECT_FALSE(query_file(path("one/below")).value().exists);
  EXPECT_EQ(query_file("").error().code(), Code::kInvalid);
  EXPECT_EQ(query_file(-1).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hawser::fileio
