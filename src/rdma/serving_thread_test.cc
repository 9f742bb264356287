#include "rdma/serving_thread.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>

#include "base/events.h"
#include "rdma/test_agent.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

using std::chrono::seconds;

class ServingThreadTest : public ::testing::Test {
 protected:
  ~ServingThreadTest() override { thread_.stop(); }

  bool round() {
    const std::lock_guard lock(mutex_);
    ++rounds_;
    changed_.notify_all();
    return false;
  }
  int rounds() {
    const std::lock_guard lock(mutex_);
    return rounds_;
  }
  bool await_rounds(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, seconds(60), [&] { return rounds_ >= count; });
  }

  Agent agent_ = agent_of_no_backends("a");
  base::EventFd queue_ = std::move(base::EventFd::open().value());
  base::EventFd wake_ = std::move(base::EventFd::open().value());
  std::mutex mutex_;
  std::condition_variable changed_;
  int rounds_ = 0;
  Duration nap_ = seconds(1000);
  ServingThread thread_{{.agent = agent_,
                         .queue_fd = queue_.fd(),
                         .wake = wake_,
                         .serve = [this] { return round(); },
                         .nap = [this] { return nap_; }}};
};

TEST_F(ServingThreadTest, ASignalEndsItsSleep) {
  thread_.start();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(await_rounds(1));
    const int before = rounds();
    wake_.signal();
    EXPECT_TRUE(await_rounds(before + 1));
  }
}

TEST_F(ServingThreadTest, ACompletionEndsItsSleep) {
  thread_.start();
  ASSERT_TRUE(await_rounds(1));
  const int before = rounds();
  queue_.signal();
  EXPECT_TRUE(await_rounds(before + 1));
}

TEST_F(ServingThreadTest, ItSleepsNoLongerThanItMay) {
  nap_ = std::chrono::milliseconds(1);
  thread_.start();
  EXPECT_TRUE(await_rounds(5));
}

TEST_F(ServingThreadTest, ItEndsAtOnceWhenItIsStopped) {
  thread_.start();
  ASSERT_TRUE(await_rounds(1));
  thread_.stop();
  const int after = rounds();
  wake_.signal();
  EXPECT_EQ(rounds(), after);
  thread_.stop();
}

TEST_F(ServingThreadTest, AForkGivesItUpAndItsParentGoesOn) {
#if defined(HAWSER_SANITIZE_THREAD) || defined(HAWSER_SANITIZE_ADDRESS_UNDEFINED)
  GTEST_SKIP() << "a thread may hold a sanitizer's lock when the process forks";
#endif
  thread_.start();
  ASSERT_TRUE(await_rounds(1));
  const pid_t child = ::fork();
  if (child == 0) {
    thread_.abandon();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const int before = rounds();
  wake_.signal();
  EXPECT_TRUE(await_rounds(before + 1));
}

TEST_F(ServingThreadTest, ItServesWhileAUserMovesTheAgentOn) {
  thread_.begin_wait();
  thread_.start();
  EXPECT_TRUE(await_rounds(3)) << "it naps for a millisecond at most";
  thread_.end_wait();
}

}  // namespace
}  // namespace rdma
HAWSER_NAMESPACE_END
