#include "base/forked_fds.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "base/fd.h"

namespace hawser::base {
namespace {

Fd any_fd() { return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }
bool has_fd(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

/// True where a forked child has the descriptor.
bool child_has(int fd) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(has_fd(fd) ? 1 : 0);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status != 0;
}

TEST(ForkedFds, AChildClosesWhatIsListedAndNothingElse) {
  const Fd listed = any_fd(), other = any_fd();
  ForkedFds::add(listed.get());
  EXPECT_FALSE(child_has(listed.get()));
  EXPECT_TRUE(child_has(other.get()));
  EXPECT_TRUE(has_fd(listed.get())) << "the parent keeps it";
  ForkedFds::remove(listed.get());
  EXPECT_TRUE(child_has(listed.get()));
}

TEST(ForkedFds, WhatDoesNotFitStaysOpenInChildren) {
  std::vector<Fd> all;
  for (std::size_t i = 0; i < ForkedFds::kMost + 1; ++i) {
    all.push_back(any_fd());
    ForkedFds::add(all.back().get());
  }
  EXPECT_FALSE(child_has(all[ForkedFds::kMost - 1].get()));
  EXPECT_TRUE(child_has(all[ForkedFds::kMost].get()));
  for (const Fd& each : all) ForkedFds::remove(each.get());
  ForkedFds::add(all.back().get());
  EXPECT_FALSE(child_has(all.back().get())) << "there is room again";
  ForkedFds::remove(all.back().get());
}

}  // namespace
}  // namespace hawser::base
