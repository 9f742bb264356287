#include "cli/interrupt.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>

namespace hawser::cli {
namespace {

// The one mutable global of the command line: a signal handler has nothing else to write to.
std::atomic<int> caught{0};
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int number) { caught.store(number, std::memory_order_relaxed); }

}  // namespace

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  // No SA_RESTART: a blocking call returns EINTR and its loop looks at the flag. One shot: the second kills.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return caught.load(std::memory_order_relaxed) != 0; }

Status interrupt_status() {
  const int number = caught.load(std::memory_order_relaxed);
  if (number == 0) return Status();
  return Status(Code::kCancelled, fmt::format("stopped by {}", number == SIGINT ? "Ctrl-C" : "SIGTERM"));
}

}  // namespace hawser::cli
