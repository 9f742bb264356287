#include "base/user_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/test_folder.h"

namespace hawser::base {
namespace {

class UserSocketTest : public testing::Test {
 protected:
  UserSocket listen(const std::string& name) { return UserSocket::listen(folder_.path(), name, ".ask", 4).value(); }
  std::string path(const std::string& name) const { return folder_.path(name + ".ask"); }
  bool is_there(const std::string& name) const {
    struct stat found {};
    return ::lstat(path(name).c_str(), &found) == 0;
  }
  /// By a process that dies, so long ago.
  void leave_behind(const std::string& name, std::time_t seconds_ago) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(UserSocket::listen(folder_.path(), name, ".ask", 4).has_value() ? 0 : 1);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(is_there(name));
    const timespec then{std::time(nullptr) - seconds_ago, 0};
    const std::array<timespec, 2> times{then, then};
    ASSERT_EQ(::utimensat(AT_FDCWD, path(name).c_str(), times.data(), 0), 0);
  }

  TestFolder folder_;
};

TEST_F(UserSocketTest, ACallerIsAccepted) {
  const UserSocket socket = listen("a");
  struct stat found {};
  ASSERT_EQ(::lstat(path("a").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
  EXPECT_FALSE(socket.accept().value().has_value()) << "nobody calls";
  const Fd caller = connect_to_user_socket(path("a")).value();
  const std::optional<UserSocket::Caller> accepted = std::move(socket.accept().value());
  ASSERT_TRUE(accepted.has_value());
  ASSERT_TRUE(accepted->socket.valid());
  ASSERT_EQ(::send(accepted->socket.get(), "x", 1, 0), 1);
  char got = 0;
  EXPECT_EQ(::recv(caller.get(), &got, 1, 0), 1);
}

TEST_F(UserSocketTest, ItsModeIsItsOwnWhateverTheUmaskIs) {
  const mode_t before = ::umask(0);
  const UserSocket socket = listen("a");
  ::umask(before);
  struct stat found {};
  ASSERT_EQ(::lstat(path("a").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
}

TEST_F(UserSocketTest, ItsFileGoesWithItButNotWithACopyInAChild) {
  {
    const UserSocket socket = listen("a");
    const pid_t child = ::fork();
    if (child == 0) {
      std::optional<UserSocket> ours(std::move(const_cast<UserSocket&>(socket)));
      ours.reset();
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(is_there("a"));
  }
  EXPECT_FALSE(is_there("a"));
}

TEST_F(UserSocketTest, ACallerSaysWhyThereIsNoAnswer) {
  EXPECT_EQ(connect_to_user_socket(path("none")).error().code(), Code::kNotFound);
  leave_behind("dead", 0);
  EXPECT_EQ(connect_to_user_socket(path("dead")).error().code(), Code::kDisconnected);
  std::ofstream(path("file")) << "x";
  EXPECT_EQ(connect_to_user_socket(path("file")).error().code(), Code::kDenied);
  const UserSocket socket = listen("a");
  ASSERT_EQ(::symlink(path("a").c_str(), path("link").c_str()), 0);
  EXPECT_EQ(connect_to_user_socket(path("link")).error().code(), Code::kDenied) << "a link may lead anywhere";
  ASSERT_EQ(::chmod(path("a").c_str(), 0666), 0);
  EXPECT_EQ(connect_to_user_socket(path("a")).error().code(), Code::kDenied);
  EXPECT_EQ(connect_to_user_socket(folder_.path(std::string(200, 'x'))).error().code(), Code::kInvalid);
}

TEST_F(UserSocketTest, ItDoesNotTakeTheNameOfAnother) {
  ASSERT_EQ(::symlink("/tmp/elsewhere", path("a").c_str()), 0);
  EXPECT_FALSE(UserSocket::listen(folder_.path(), "a", ".ask", 4).has_value()) << "a link is there";
  const UserSocket socket = listen("b");
  EXPECT_FALSE(UserSocket::listen(folder_.path(), "b", ".ask", 4).has_value());
  EXPECT_TRUE(is_there("b"));
  EXPECT_EQ(UserSocket::listen(folder_.path(), std::string(200, 'x'), ".ask", 4).error().code(), Code::kInvalid);
}

TEST_F(UserSocketTest, TooManyWhoWaitAreToldSo) {
  const UserSocket socket = UserSocket::listen(folder_.path(), "a", ".ask", 1).value();
  std::vector<Fd> callers;
  Status refusal;
  while (refusal.ok() && callers.size() < 16) {
    Result<Fd> caller = connect_to_user_socket(path("a"));
    if (caller) {
      callers.push_back(std::move(*caller));
    } else {
      refusal = caller.error();
    }
  }
  EXPECT_EQ(refusal.code(), Code::kBusy) << refusal.to_string();
}

TEST_F(UserSocketTest, AnotherUsersCallIsClosed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can call as somebody else";
  const UserSocket socket = listen("a");
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path("a").c_str(), 0666), 0);  // As if the file's mode did not keep others out.
  const pid_t child = ::fork();
  if (child == 0) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path("a").copy(address.sun_path, sizeof address.sun_path - 1);
    const int caller = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const bool is_there = ::setresuid(65534, 65534, 65534) == 0 &&
                          ::connect(caller, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    char got = 0;
    ::_exit(is_there && ::recv(caller, &got, 1, 0) <= 0 ? 0 : 1);  // The end of the connection.
  }
  std::optional<UserSocket::Caller> accepted;
  int status = -1;
  while (!accepted && ::waitpid(child, &status, WNOHANG) == 0) accepted = std::move(socket.accept().value());
  ASSERT_TRUE(accepted.has_value());
  EXPECT_FALSE(accepted->socket.valid());
  if (status == -1) {
    ASSERT_EQ(::waitpid(child, &status, 0), child);
  }
  EXPECT_EQ(status, 0);
}

TEST_F(UserSocketTest, ANewcomerRemovesThoseOfProcessesThatDied) {
  leave_behind("old", 61);
  leave_behind("young", 0);
  const UserSocket living = listen("living");
  const timespec then{std::time(nullptr) - 1000, 0};
  const std::array<timespec, 2> times{then, then};
  ASSERT_EQ(::utimensat(AT_FDCWD, path("living").c_str(), times.data(), 0), 0);
  std::ofstream(path("file")) << "x";
  const UserSocket newcomer = listen("newcomer");
  EXPECT_FALSE(is_there("old"));
  EXPECT_TRUE(is_there("young")) << "it may be about to listen";
  EXPECT_TRUE(is_there("living"));
  EXPECT_TRUE(is_there("file"));
}

}  // namespace
}  // namespace hawser::base
