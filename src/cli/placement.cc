// How far apart two cores are: a cache line bounced between two pinned processes. See ceiling.h.

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <new>

#include <hawser/time.h>

#include "base/spin.h"
#include "cli/ceiling.h"

namespace hawser::cli {
namespace {

constexpr int kBounces = 20000;

struct Lines {
  alignas(64) std::atomic<std::uint32_t> ping;
  alignas(64) std::atomic<std::uint32_t> pong;
};

bool pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return sched_setaffinity(0, sizeof(set), &set) == 0;
}

std::array<int, 2> first_two(const cpu_set_t& allowed) {
  std::array<int, 2> cpus = {-1, -1};
  std::size_t found = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) cpus[found++] = cpu;
  }
  return cpus;
}

// Both ends give up after a while, so a lost partner costs a figure and no hang.
bool await_value(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  for (std::uint64_t spins = 0; word.load(std::memory_order_acquire) != value; ++spins) {
    if (spins > 100'000'000) return false;
    base::cpu_relax();
  }
  return true;
}

void echo(Lines& lines) {
  for (std::uint32_t i = 1; i <= kBounces; ++i) {
    if (!await_value(lines.ping, i)) return;
    lines.pong.store(i, std::memory_order_release);
  }
}

std::int64_t bounce(Lines& lines) {
  std::int64_t total = 0;
  Instant start = Clock::steady().now();
  for (std::uint32_t i = 1; i <= kBounces; ++i) {
    lines.ping.store(i, std::memory_order_release);
    if (!await_value(lines.pong, i)) return 0;
    if (i == kBounces / 2) start = Clock::steady().now();  // The first half warms up.
  }
  total = (Clock::steady().now() - start).count();
  return total / (kBounces / 2);
}

}  // namespace

std::int64_t core_round_trip_ns() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 0;
  const auto cpus = first_two(allowed);
  if (cpus[1] < 0) return 0;
  void* memory = mmap(nullptr, sizeof(Lines), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  auto* lines = new (memory) Lines{};
  const pid_t child = fork();
  if (child == 0) {
    if (pin(cpus[1])) echo(*lines);
    _exit(0);
  }
  std::int64_t result = 0;
  if (child > 0) {
    if (pin(cpus[0])) result = bounce(*lines);
    sched_setaffinity(0, sizeof(allowed), &allowed);
    waitpid(child, nullptr, 0);
  }
  munmap(memory, sizeof(Lines));
  return result;
}

}  // namespace hawser::cli
