#include "base/user_cookie.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/test_folder.h"

namespace hawser::base {
namespace {

class UserCookie : public ::testing::Test {
 protected:
  std::string folder() const { return (std::filesystem::path(root_.path()) / "hawser").string(); }
  std::string file() const { return folder() + "/cookie"; }
  TestFolder root_;
};

TEST_F(UserCookie, IsMadeOnceAndClosedToOthers) {
  const Id128 first = user_cookie_in(folder()).value();
  EXPECT_FALSE(first.is_zero());
  EXPECT_EQ(user_cookie_in(folder()).value(), first);
  struct stat status = {};
  ASSERT_EQ(::stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder())) ++files;
  EXPECT_EQ(files, 1u) << "what was made on the way stays behind";
}

TEST_F(UserCookie, IsRefusedWhereOthersMayReadIt) {
  (void)user_cookie_in(folder()).value();
  ASSERT_EQ(::chmod(file().c_str(), 0644), 0);
  EXPECT_EQ(user_cookie_in(folder()).error().code(), Code::kDenied);
  ASSERT_EQ(::chmod(file().c_str(), 0600), 0);
  ASSERT_EQ(::chmod(folder().c_str(), 0755), 0);
  EXPECT_EQ(user_cookie_in(folder()).error().code(), Code::kDenied);
}

TEST_F(UserCookie, IsRefusedBehindALink) {
  (void)user_cookie_in(folder()).value();
  const std::string elsewhere = folder() + "/elsewhere";
  ASSERT_EQ(::rename(file().c_str(), elsewhere.c_str()), 0);
  ASSERT_EQ(::symlink(elsewhere.c_str(), file().c_str()), 0);
  EXPECT_EQ(user_cookie_in(folder()).error().code(), Code::kDenied);
  const std::string link = (std::filesystem::path(root_.path()) / "link").string();
  ASSERT_EQ(::symlink(folder().c_str(), link.c_str()), 0);
  EXPECT_EQ(user_cookie_in(link).error().code(), Code::kDenied);
}

TEST_F(UserCookie, IsRefusedWhereAnotherUserOwnsIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a file of another user";
  (void)user_cookie_in(folder()).value();
  ASSERT_EQ(::chown(file().c_str(), 1234, 1234), 0);
  EXPECT_EQ(user_cookie_in(folder()).error().code(), Code::kDenied);
}

TEST_F(UserCookie, IsRefusedWhenItIsCutOff) {
  (void)user_cookie_in(folder()).value();
  ASSERT_EQ(::truncate(file().c_str(), 15), 0);
  EXPECT_EQ(user_cookie_in(folder()).error().code(), Code::kDenied);
}

}  // namespace
}  // namespace hawser::base
