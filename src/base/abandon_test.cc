#include "base/abandon.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <vector>

namespace hawser::base {
namespace {

TEST(Abandon, LeavesThreadsOfTheChildAlone) {
#ifdef HAWSER_SANITIZE_THREAD
  GTEST_SKIP() << "ThreadSanitizer does not follow a child of a process with threads";
#endif
#ifdef HAWSER_EMULATED
  GTEST_SKIP() << "an emulator makes no threads in a child of a process with threads";
#endif
  std::atomic<bool> ends = false;
  std::vector<std::thread> parents;
  for (int i = 0; i < 4; ++i) parents.emplace_back([&] { ends.wait(false); });
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr unsigned kPatience = 20;  // Seconds.
    ::alarm(kPatience);
    std::vector<std::thread> own;  // They take the places of the parent's.
    for (int i = 0; i < 4; ++i) own.emplace_back([] {});
    for (std::thread& each : parents) {
      abandon(each);
      if (each.joinable()) ::_exit(1);
    }
    for (std::thread& each : own) each.join();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  ends = true;
  ends.notify_all();
  for (std::thread& each : parents) each.join();
}

TEST(Abandon, OfNoThreadIsNothing) {
  std::thread none;
  abandon(none);
  EXPECT_FALSE(none.joinable());
}

}  // namespace
}  // namespace hawser::base
