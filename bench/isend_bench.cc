// How long a thread takes to begin a small message between ranks while the agent's driver moves large ones.
//
//   isend_bench BACKEND [messages]
//
// Two ranks of one process. One thread sends messages of 64 MiB, one after the other. The main thread begins messages
// of 8 bytes in class critical, and waits for each. The times are those of the calls to `isend`, not of the messages.

#include <hawser/world.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace {

using hawser::Duration;
using hawser::Request;
using hawser::World;

constexpr std::size_t kLarge = std::size_t{64} << 20;
constexpr std::uint64_t kBulkTag = 1, kSmallTag = 2;

void expect_ok(Request& request) {
  const hawser::Status status = request.wait(Duration::max());
  if (status.ok()) return;
  std::fprintf(stderr, "isend_bench: %s\n", status.to_string().c_str());
  std::exit(1);
}

void send_large(std::vector<World>& worlds, const std::atomic<bool>& is_over) {
  const std::vector<std::byte> from(kLarge);
  std::vector<std::byte> to(kLarge);
  while (!is_over) {
    Request received = worlds[1].ireceive(std::span(to), 0, kBulkTag);
    Request sent = worlds[0].isend(std::span(from), 1, kBulkTag);
    expect_ok(sent);
    expect_ok(received);
  }
}

/// Nanoseconds of each call.
std::vector<double> time_small(std::vector<World>& worlds, int messages) {
  using Clock = std::chrono::steady_clock;
  const std::array<std::byte, 8> from = {};
  std::array<std::byte, 8> to = {};
  hawser::MessageOptions options;
  options.priority = hawser::Priority::kCritical;
  std::vector<double> times;
  for (int i = 0; i < messages; ++i) {
    Request received = worlds[1].ireceive(std::span(to), 0, kSmallTag);
    const Clock::time_point begun = Clock::now();
    Request sent = worlds[0].isend(std::span(from), 1, kSmallTag, options);
    times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begun).count());
    expect_ok(sent);
    expect_ok(received);
  }
  return times;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: isend_bench BACKEND [messages]\n");
    return 2;
  }
  const int messages = count > 2 ? std::max(std::atoi(arguments[2]), 1) : 3000;
  hawser::WorldOptions options;
  options.agent.backends = {{.name = arguments[1]}};
  hawser::Result<std::vector<World>> worlds = World::local(2, options);
  if (!worlds) {
    std::fprintf(stderr, "isend_bench: %s\n", worlds.error().to_string().c_str());
    return 1;
  }
  std::atomic<bool> is_over{false};
  std::thread bulk([&] { send_large(*worlds, is_over); });
  std::vector<double> times = time_small(*worlds, messages);
  is_over = true;
  bulk.join();
  std::ranges::sort(times);
  std::printf("%s: isend of 8 B beside messages of 64 MiB: p50 %.2f us, p99 %.1f us, max %.0f us\n", arguments[1],
              times[times.size() / 2] / 1e3, times[times.size() * 99 / 100] / 1e3, times.back() / 1e3);
  return 0;
}
