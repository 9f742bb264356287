#include "base/forked_fds.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace hawser::base {
namespace {

constexpr int kNoFd = 0;  // Others are one more than a descriptor.
constinit std::array<std::atomic<int>, ForkedFds::kMost> forked_fds{};

void replace_forked(int from, int to) {
  for (std::atomic<int>& each : forked_fds) {
    int expected = from;
    if (each.compare_exchange_strong(expected, to)) return;
  }
}

/// In the child, where only system calls may be made.
void close_forked() {
  for (std::atomic<int>& each : forked_fds) {
    if (const int fd = each.exchange(kNoFd) - 1; fd >= 0) ::close(fd);
  }
}

}  // namespace

void ForkedFds::add(int fd) {
  static const int registered = ::pthread_atfork(nullptr, nullptr, close_forked);
  (void)registered;
  replace_forked(kNoFd, fd + 1);
}

void ForkedFds::remove(int fd) { replace_forked(fd + 1, kNoFd); }

}  // namespace hawser::base
