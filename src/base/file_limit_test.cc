#include "base/file_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hawser::base {
namespace {

TEST(FileLimit, SizesBeyondTheLimitAreNamed) {
  const pid_t child = ::fork();
  if (child == 0) {  // The limit is the process's.
    const rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(1);
    if (!check_file_limit("a file", 4096).ok() || !is_within_file_limit(4096)) ::_exit(2);
    const Status status = check_file_limit("writing /x", 4097);
    if (status.ok() || is_within_file_limit(4097)) ::_exit(3);
    const std::string text = status.to_string();
    const bool is_told = text.find("RLIMIT_FSIZE = 4096") != text.npos && text.find("writing /x") != text.npos;
    ::_exit(is_told ? 0 : 4);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace hawser::base
