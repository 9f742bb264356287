// How fast one core writes what another core then reads, in a place that both use again and again.
//
//   shared_copy_bench [repeats]
//
// Two threads, each on a core of its own. The first fills its source and copies it into one of four slots; the second
// copies the slot out. A cell is the median of the copy in and of the copy out, in nanoseconds, of so many repeats. The
// ways take turns, so that a noisy moment hits all. Lines that the second core has read make the copy in slow.
//
// Then the first thread writes one slot after the other around 256 KiB, and the second reads them behind it. A cell is
// the median rate in GB/s, of a tenth as many repeats of one time around.

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

constexpr std::size_t kArena = 256 * 1024, kSizeMax = 64 * 1024;

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
    Way{"later",
        [](std::byte* to, const std::byte* from, std::size_t size) {
          const hawser::base::CopyHint hint = {.read_elsewhere = true, .read_later = true};
          if (hawser::base::copy_bytes(to, from, size, hint)) hawser::base::stream_fence();
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

/// Slots are numbered from 1 on, and lie one behind the other around the arena.
struct Turn {
  std::atomic<std::size_t> written{0}, read{0}, size{0};
  std::atomic<bool> is_over{false};
};

std::byte* slot_of(std::byte* arena, std::size_t number, std::size_t size) {
  return arena + number % (kArena / size) * size;
}

void read_all(Turn& turn, std::byte* slots) {
  keep_to(1);
  std::byte* const own = arena();
  for (std::size_t done = 0; !turn.is_over.load();) {
    if (turn.written.load() == done) {
      hawser::base::cpu_relax();
      continue;
    }
    ++done;
    const std::size_t size = turn.size.load();
    hawser::base::copy_bytes(own, slot_of(slots, done, size), size);
    turn.read.store(done);
  }
}

class Bench {
 public:
  Bench() : reader_([this] { read_all(turn_, slots_); }) { keep_to(0); }
  ~Bench() {
    turn_.is_over.store(true);
    reader_.join();
  }

  /// Nanoseconds of the copy in, and of the copy out behind it.
  std::array<double, 2> in_and_out(const Way& way) {
    const auto start = Clock::now();
    write_next(way);
    const auto written = Clock::now();
    wait_for(turn_.written.load());
    return {ns(written - start), ns(Clock::now() - written)};
  }
  /// GB/s, once around the arena.
  double rate(const Way& way) {
    const std::size_t count = kArena / turn_.size.load();
    const auto start = Clock::now();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t next = turn_.written.load() + 1;
      if (next > count) wait_for(next - count);
      write_next(way);
    }
    wait_for(turn_.written.load());
    return static_cast<double>(kArena) / ns(Clock::now() - start);
  }
  void begin(std::size_t size) { turn_.size.store(size); }
  void fill_source(int value) { std::memset(source_, value, kSizeMax); }

 private:
  static double ns(Clock::duration time) { return std::chrono::duration<double, std::nano>(time).count(); }
  void write_next(const Way& way) {
    const std::size_t number = turn_.written.load() + 1, size = turn_.size.load();
    way.copy(slot_of(slots_, number, size), source_, size);
    turn_.written.store(number);
  }
  void wait_for(std::size_t number) {
    while (turn_.read.load() < number) hawser::base::cpu_relax();
  }

  std::byte* const slots_ = arena();
  std::byte* const source_ = arena();
  Turn turn_;
  std::thread reader_;
};

void print_head(const char* unit) {
  std::printf("%-8s", "bytes");
  for (const Way& way : kWays) std::printf("%18s", way.name);
  std::printf("   %s\n", unit);
}

void print_times(Bench& bench, int repeats) {
  print_head("ns in + ns out");
  for (std::size_t size = 1024; size <= kSizeMax; size *= 2) {
    bench.begin(size);
    std::array<std::vector<double>, kWays.size()> in, out;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      for (std::size_t way = 0; way < kWays.size(); ++way) {
        bench.fill_source(repeat);
        const std::array<double, 2> times = bench.in_and_out(kWays[way]);
        in[way].push_back(times[0]);
        out[way].push_back(times[1]);
      }
    }
    std::printf("%-8zu", size);
    for (std::size_t way = 0; way < kWays.size(); ++way) {
      std::printf("%9.0f + %6.0f", median(in[way]), median(out[way]));
    }
    std::printf("\n");
  }
}

void print_rates(Bench& bench, int repeats) {
  print_head("GB/s");
  for (std::size_t size = 1024; size <= kSizeMax; size *= 2) {
    bench.begin(size);
    std::array<std::vector<double>, kWays.size()> rates;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      for (std::size_t way = 0; way < kWays.size(); ++way) rates[way].push_back(bench.rate(kWays[way]));
    }
    std::printf("%-8zu", size);
    for (std::size_t way = 0; way < kWays.size(); ++way) std::printf("%18.1f", median(rates[way]));
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::max(1, std::atoi(argv[1])) : 2000;
  Bench bench;
  print_times(bench, repeats);
  print_rates(bench, std::max(1, repeats / 10));
  return 0;
}
