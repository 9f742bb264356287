#include "compat/home_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace hawser::compat {
namespace {

TEST(HomeProcess, IsTheOneThatMadeIt) {
  const HomeProcess home;
  EXPECT_TRUE(home.is_this());
  EXPECT_TRUE(home.need("post_xfer_req", "a").ok());
}

TEST(HomeProcess, AChildIsToldWhoseItIs) {
#if defined(__SANITIZE_THREAD__) || defined(HAWSER_SANITIZE_THREAD)
  GTEST_SKIP() << "ThreadSanitizer does not follow a child of a process with threads";
#endif
  const HomeProcess home;
  const std::string parent = std::to_string(::getpid());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20);
    const Status status = home.need("post_xfer_req", "a");
    const std::string text = status.to_string();
    const bool is_named = text.find("agent 'a' was opened by process " + parent) != std::string::npos;
    ::_exit(!home.is_this() && !status.ok() && is_named ? 0 : 1);
  }
  int result = 0;
  ASSERT_EQ(::waitpid(child, &result, 0), child);
  EXPECT_TRUE(WIFEXITED(result) && WEXITSTATUS(result) == 0);
  EXPECT_TRUE(home.need("post_xfer_req", "a").ok()) << "the parent notices nothing";
}

}  // namespace
}  // namespace hawser::compat
