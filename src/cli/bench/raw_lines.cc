#include "cli/bench/raw_lines.h"

#include "base/spin.h"
#include "cli/bench/sampler.h"

namespace hawser::cli::bench {

void echo_lines(BoardPage& page, const std::function<bool()>& over) {
  std::uint32_t seen = page.ping.load(std::memory_order_acquire);
  page.pong.store(seen, std::memory_order_release);
  for (std::uint32_t spins = 0;; ++spins) {
    const std::uint32_t ping = page.ping.load(std::memory_order_acquire);
    if (ping != seen) {
      seen = ping;
      page.pong.store(ping, std::memory_order_release);
    } else {
      // Looking for the end costs a line more, so it is done now and then only.
      if (spins % 1024 == 1023 && over()) return;
      base::cpu_relax();
    }
  }
}

Status bounce_lines(BoardPage& page, std::uint32_t count, Duration patience) {
  std::uint32_t value = page.ping.load(std::memory_order_relaxed);
  std::int64_t deadline = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    page.ping.store(++value, std::memory_order_release);
    for (std::uint32_t spins = 1; page.pong.load(std::memory_order_acquire) != value; ++spins) {
      base::cpu_relax();
      if (spins % 65536 != 0) continue;
      if (deadline == 0) deadline = now_ns() + patience.count();
      if (now_ns() > deadline) return Status(Code::kTimedOut, "the second process does not bounce the cache line");
    }
  }
  return Status();
}

}  // namespace hawser::cli::bench
