#include "base/fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cerrno>

namespace hawser::base {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

Fd open_null() { return Fd(::open("/dev/null", O_RDWR | O_CLOEXEC)); }

TEST(Fd, ClosesOnce) {
  int number = -1;
  {
    Fd fd = open_null();
    ASSERT_TRUE(fd.valid());
    number = fd.get();
    Fd moved = std::move(fd);
    EXPECT_FALSE(fd.valid());  // NOLINT: moved from
    EXPECT_EQ(moved.get(), number);
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(Fd, AssignsReleasesAndKeepsErrno) {
  Fd a = open_null();
  Fd b = open_null();
  const int old = a.get();
  errno = ERANGE;
  a = std::move(b);
  EXPECT_EQ(errno, ERANGE);
  EXPECT_FALSE(is_open(old));
  const int raw = a.release();
  EXPECT_FALSE(a.valid());
  EXPECT_TRUE(is_open(raw));
  a.reset(raw);
  EXPECT_EQ(a.get(), raw);
}

TEST(Fd, DuplicatesCloseOnExec) {
  const Fd fd = open_null();
  const Result<Fd> copy = fd.duplicate();
  ASSERT_TRUE(copy);
  EXPECT_NE(copy->get(), fd.get());
  EXPECT_TRUE(::fcntl(copy->get(), F_GETFD) & FD_CLOEXEC);
  EXPECT_EQ(Fd().duplicate().error().code(), Code::kInvalid);
}

TEST(Fd, SetsFlags) {
  const Fd fd = open_null();
  EXPECT_TRUE(set_cloexec(fd.get(), false).ok());
  EXPECT_FALSE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC);
  EXPECT_TRUE(set_cloexec(fd.get()).ok());
  EXPECT_TRUE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC);
  EXPECT_TRUE(set_nonblocking(fd.get()).ok());
  EXPECT_TRUE(::fcntl(fd.get(), F_GETFL) & O_NONBLOCK);
  EXPECT_FALSE(set_cloexec(-1).ok());
}

TEST(Errno, SaysWhatAndWhy) {
  const Status status = errno_status("open /x", ENOENT);
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_EQ(status.message(), "open /x: No such file or directory (errno 2)");
  EXPECT_EQ(errno_status(Code::kFailed, "x", EPERM).code(), Code::kFailed);
  EXPECT_EQ(code_of_errno(ECONNRESET), Code::kDisconnected);
  EXPECT_EQ(code_of_errno(EAGAIN), Code::kBusy);
  EXPECT_EQ(code_of_errno(EIO), Code::kFailed);
}

TEST(TrialsErrno, AShortageOfDescriptorsIsNobodyElsesFault) {
  const Status status = errno_status(Code::kUnsupported, "reading /proc/x", EMFILE);
  EXPECT_EQ(status.code(), Code::kBusy);
  EXPECT_NE(status.message().find("RLIMIT_NOFILE = "), std::string_view::npos) << status.to_string();
  EXPECT_NE(status.advice().find("ulimit -n"), std::string_view::npos) << status.to_string();
  EXPECT_EQ(errno_status(Code::kFailed, "x", ENFILE).code(), Code::kBusy);
}

}  // namespace
}  // namespace hawser::base
