#include "rdma/serving_thread.h"

#include <poll.h>

#include <algorithm>
#include <array>

#include <hawser/driver.h>

#include "agent/inner.h"
#include "base/abandon.h"
#include "base/spin.h"
#include "base/spin_window.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

constexpr Duration kSpin = DriverOptions().spin, kSpinMax = std::chrono::microseconds(300);
constexpr Duration kLedNap = std::chrono::milliseconds(1);

}  // namespace

void ServingThread::start() {
  thread_ = std::thread([this] { run(); });
}

void ServingThread::stop() {
  stop_.store(true, std::memory_order_release);
  uses_.wake.signal();
  if (thread_.joinable()) thread_.join();
}

void ServingThread::abandon() { base::abandon(thread_); }

void ServingThread::run() {
  const bool drives = !agent::inner::is_driven(uses_.agent);
  std::array<pollfd, 3> watched = {pollfd{.fd = uses_.queue_fd, .events = POLLIN, .revents = 0},
                                   pollfd{.fd = uses_.wake.fd(), .events = POLLIN, .revents = 0},
                                   pollfd{.fd = drives ? uses_.agent.event_fd() : -1, .events = POLLIN, .revents = 0}};
  Instant busy = Clock::steady().now();
  base::SpinWindow spin(kSpin, kSpinMax);
  while (!stop_.load(std::memory_order_acquire)) {
    const bool is_led = drives && waiters_.load(std::memory_order_relaxed) > 0;
    const bool moved = drives && !is_led && uses_.agent.poll() > 0;
    const bool served = uses_.serve();
    if (served || moved) {
      busy = Clock::steady().now();
      continue;
    }
    // As a Driver: what follows at once finds this thread awake.
    const Instant now = Clock::steady().now();
    if (drives && !is_led && now - busy < spin.window()) {
      base::cpu_relax();
      continue;
    }
    const Duration pause = is_led ? std::min(kLedNap, uses_.nap()) : uses_.nap();
    const timespec patience = {.tv_sec = pause.count() / 1'000'000'000, .tv_nsec = pause.count() % 1'000'000'000};
    (void)::ppoll(watched.data(), is_led ? 2 : 3, &patience, nullptr);
    (void)uses_.wake.drain();
    spin.slept(Clock::steady().now() - now);
  }
}

}  // namespace rdma
HAWSER_NAMESPACE_END
