// Whether the look that precedes each cross-memory call finds a peer that is gone, however it went.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include <gtest/gtest.h>

#include "backend/shm/cross_memory.h"
#include "backend/shm/place.h"

namespace hawser::backend::shm {
namespace {

constexpr int kPatienceMs = 20'000;

/// A child at the other end of a socket, and what this end knows of it.
class ShmAlive : public testing::Test {
 protected:
  ~ShmAlive() override { bury(); }

  template <typename Life>
  void start(Life life) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    socket_ = base::Fd(ends[0]);
    child_ = ::fork();
    if (child_ == 0) {
      ::close(ends[0]);
      life(ends[1]);
      ::_exit(0);
    }
    ::close(ends[1]);
    ASSERT_GT(child_, 0);
    process_ = base::Fd(static_cast<int>(::syscall(SYS_pidfd_open, child_, 0)));
    if (!process_) GTEST_SKIP() << "the kernel has no pidfd";
    memory_ = CrossMemory(child_, process_.get(), socket_.get(), forks_);
  }
  static void forget_the_last_look() {
    const Instant end = Clock::steady().now() + CrossMemory::kMoment;
    while (Clock::steady().now() < end) continue;
  }
  /// Until the child's end of the socket is gone.
  void await_hang_up() const {
    pollfd socket{socket_.get(), POLLRDHUP, 0};
    ASSERT_EQ(::poll(&socket, 1, kPatienceMs), 1);
    forget_the_last_look();
  }
  void await_end() const {
    pollfd process{process_.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&process, 1, kPatienceMs), 1);
    forget_the_last_look();
  }
  void bury() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = 0;
  }
  static void stay(int) { ::pause(); }

  ForkList forks_;
  base::Fd socket_, process_;
  pid_t child_ = 0;
  CrossMemory memory_;
};

TEST_F(ShmAlive, OneThatWasKilled) {
  start(stay);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(memory_.is_alive());
  ::kill(child_, SIGKILL);
  await_end();
  EXPECT_FALSE(memory_.is_alive());  // Still a zombie.
  bury();
  EXPECT_FALSE(memory_.is_alive());
}

TEST_F(ShmAlive, OneThatDiedBeforeTheFirstLook) {
  start(stay);
  bury();
  EXPECT_FALSE(memory_.is_alive());
}

TEST_F(ShmAlive, OneWhoseSocketHasACopy) {
  start([](int socket) {
    std::byte end{};
    if (::fork() == 0) ::_exit(::read(socket, &end, 1) == 0 ? 0 : 1);  // It keeps the socket until the test lets go.
    ::pause();
  });
  EXPECT_TRUE(memory_.is_alive());
  ::kill(child_, SIGKILL);
  await_end();
  EXPECT_FALSE(memory_.is_alive());
}

TEST_F(ShmAlive, OneThatLetGo) {
  start([](int socket) {
    std::byte go{};
    (void)!::read(socket, &go, 1);
    ::shutdown(socket, SHUT_WR);
    ::pause();
  });
  EXPECT_TRUE(memory_.is_alive());
  ASSERT_EQ(::write(socket_.get(), "", 1), 1);
  await_hang_up();
  EXPECT_FALSE(memory_.is_alive());
}

TEST_F(ShmAlive, OneThatBecameAnotherProgram) {
  start([](int socket) {
    std::byte go{};
    (void)!::read(socket, &go, 1);
    ::execlp("sleep", "sleep", "30", nullptr);
  });
  EXPECT_TRUE(memory_.is_alive());
  ASSERT_EQ(::write(socket_.get(), "", 1), 1);
  await_hang_up();
  EXPECT_FALSE(memory_.is_alive());
}

TEST_F(ShmAlive, PacketsThatWaitMeanNothing) {
  start([](int socket) {
    (void)!::write(socket, "word", 4);
    ::pause();
  });
  EXPECT_TRUE(memory_.is_alive());
  pollfd socket{socket_.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&socket, 1, kPatienceMs), 1);
  EXPECT_TRUE(memory_.is_alive());
}

TEST_F(ShmAlive, WithoutADescriptorLeft) {
  start(stay);
  if (socket_.get() < 2 || process_.get() < 2) GTEST_SKIP() << "the test has no standard descriptors";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 2, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool was_alive = memory_.is_alive();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(was_alive);
  ::kill(child_, SIGKILL);
  await_end();
  EXPECT_FALSE(memory_.is_alive());
}

TEST_F(ShmAlive, NoneAtAll) { EXPECT_FALSE(memory_.is_alive()); }

}  // namespace
}  // namespace hawser::backend::shm
