#include "base/file_kind.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "base/test_folder.h"

namespace hawser::base {
namespace {

class FileKind : public testing::Test {
 protected:
  Status check(const std::string& name) const {
    const Fd folder(::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return check_file_place(folder.get(), name, "some/" + name);
  }
  void expect_refused(const std::string& name, const std::string& what) const {
    const Status status = check(name);
    EXPECT_EQ(status.code(), Code::kInvalid) << name;
    EXPECT_NE(status.to_string().find("'some/" + name + "' " + what), std::string::npos) << status.to_string();
    EXPECT_EQ(check_file_place(AT_FDCWD, folder_.path(name), "").code(), Code::kInvalid) << name;
  }

  const base::TestFolder folder_{"hawser-kind"};
};

TEST_F(FileKind, FilesAndNothingMakeRoom) {
  std::ofstream(folder_.path("file")) << "old";
  std::filesystem::create_symlink("file", folder_.path("link"));
  std::filesystem::create_symlink("nowhere", folder_.path("dangling"));
  std::filesystem::create_symlink("loop", folder_.path("loop"));
  for (const char* name : {"file", "link", "dangling", "loop", "none"}) EXPECT_TRUE(check(name).ok()) << name;
}

TEST_F(FileKind, WhatElseLiesThereIsNamed) {
  ASSERT_EQ(::mkfifo(folder_.path("fifo").c_str(), 0600), 0);
  std::filesystem::create_directory(folder_.path("folder"));
  std::filesystem::create_symlink("/dev/null", folder_.path("null"));
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string at = folder_.path("socket");
  ASSERT_LT(at.size(), sizeof(address.sun_path));
  std::ranges::copy(at, address.sun_path);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  expect_refused("fifo", "is a FIFO");
  expect_refused("folder", "is a folder");
  expect_refused(".", "is a folder");
  expect_refused("null", "leads to a device");
  expect_refused("socket", "is a socket");
  EXPECT_NE(check_file_place(AT_FDCWD, "/dev/null", "/dev/null").to_string().find("is a device"), std::string::npos);
}

}  // namespace
}  // namespace hawser::base
