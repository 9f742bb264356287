// How fast one core writes what another core then reads, in a place that both use again and again.
//
//   shared_copy_bench [repeats]
//
// Two threads, each on a core of its own. The first fills its source and copies it into one of four slots; the second
// copies the slot out. A cell is the median of the copy in and of the copy out, in nanoseconds, of so many repeats. The
// ways take turns, so that a noisy moment hits all. Lines that the second core has read make the copy in slow.

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "base/copy.h"
#include "base/copy_string.h"
#include "base/spin.h"

namespace {

using hawser::base::kernels;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kSlots = 4, kSlotBytes = 64 * 1024 + 128, kArena = kSlots * kSlotBytes + 4096;

struct Way {
  const char* name;
  void (*copy)(std::byte* target, const std::byte* source, std::size_t size);
};

constexpr std::array kWays = {
    Way{"loop", [](std::byte* to, const std::byte* from, std::size_t size) { kernels().cached_one(to, from, size); }},
    Way{"string",
        [](std::byte* to, const std::byte* from, std::size_t size) { hawser::base::string_move(to, from, size); }},
    Way{"stream",
        [](std::byte* to, const std::byte* from, std::size_t size) {
          kernels().stream_one(to, from, size);
          hawser::base::stream_fence();
        }},
    Way{"hawser",
        [](std::byte* to, const std::byte* from, std::size_t size) {
          if (hawser::base::copy_bytes(to, from, size, {.read_elsewhere = true})) hawser::base::stream_fence();
        }},
};

std::byte* arena() {
  void* const base = ::mmap(nullptr, kArena, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) std::abort();
  std::memset(base, 1, kArena);
  return static_cast<std::byte*>(base);
}

void keep_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (::pthread_setaffinity_np(::pthread_self(), sizeof set, &set) != 0) std::abort();
}

double median(std::vector<double> all) {
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

struct Turn {
  std::atomic<std::size_t> asked{0}, read{0}, size{0};
  std::atomic<bool> is_over{false};
};

void read_all(Turn& turn, const std::byte* slots) {
  keep_to(1);
  std::byte* const own = arena();
  for (std::size_t done = 0; !turn.is_over.load();) {
    const std::size_t asked = turn.asked.load();
    if (asked == done) {
      hawser::base::cpu_relax();
      continue;
    }
    done = asked;
    hawser::base::copy_bytes(own, slots + done % kSlots * kSlotBytes, turn.size.load());
    turn.read.store(done);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::max(1, std::atoi(argv[1])) : 2000;
  std::byte* const slots = arena();
  std::byte* const source = arena();
  Turn turn;
  std::thread reader([&] { read_all(turn, slots); });
  keep_to(0);
  std::printf("%-8s", "bytes");
  for (const Way& way : kWays) std::printf("%20s", way.name);
  std::printf("   ns in + ns out\n");
  for (std::size_t size = 1024; size <= 64 * 1024; size *= 2) {
    std::array<std::vector<double>, kWays.size()> in, out;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      for (std::size_t way = 0; way < kWays.size(); ++way) {
        const std::size_t number = turn.asked.load() + 1;
        std::memset(source, repeat, size);
        turn.size.store(size);
        const auto start = Clock::now();
        kWays[way].copy(slots + number % kSlots * kSlotBytes, source, size);
        const auto written = Clock::now();
        turn.asked.store(number);
        while (turn.read.load() != number) hawser::base::cpu_relax();
        in[way].push_back(static_cast<double>((written - start).count()));
        out[way].push_back(static_cast<double>((Clock::now() - written).count()));
      }
    }
    std::printf("%-8zu", size);
    for (std::size_t way = 0; way < kWays.size(); ++way) {
      std::printf("%11.0f + %6.0f", median(in[way]), median(out[way]));
    }
    std::printf("\n");
  }
  turn.is_over.store(true);
  reader.join();
  return 0;
}
