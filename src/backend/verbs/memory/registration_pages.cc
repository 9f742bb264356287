#include "backend/verbs/memory/registration_pages.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <span>
#include <system_error>
#include <thread>

namespace hawser::backend::verbs {
namespace {

constexpr std::uintptr_t kCut = 2u << 20;
// Linux 5.14; older headers lack it, older kernels answer EINVAL.
constexpr int kPopulateWrite = 23;

void populate(const PageSlice& slice) {
  (void)::madvise(reinterpret_cast<void*>(slice.address), slice.size, kPopulateWrite);
}

/// CPUs that this thread may use.
unsigned usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<unsigned>(std::max(CPU_COUNT(&set), 1));
}

}  // namespace

std::vector<PageSlice> touch_slices(std::uintptr_t address, std::size_t size, unsigned count) {
  std::vector<PageSlice> slices;
  if (size < kTouchBytesMin || count == 0) return slices;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t end = (address + size + page - 1) & ~(page - 1);
  std::uintptr_t from = address & ~(page - 1);
  for (unsigned left = count; left > 0 && from < end; --left) {
    const std::uintptr_t to = left == 1 ? end : std::min(end, (from + (end - from) / left + kCut - 1) & ~(kCut - 1));
    slices.push_back({from, to - from});
    from = to;
  }
  return slices;
}

bool mostly_present(std::uintptr_t address, std::size_t size) {
  constexpr std::size_t kSamples = 64;
  constexpr std::size_t kAbsentMax = 4;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  std::size_t absent = 0;
  for (std::size_t i = 0; i < kSamples; ++i) {
    const std::uintptr_t at = (address + size / kSamples * i) & ~(page - 1);
    unsigned char present = 0;
    // What is not mapped at all is not present either; the registration will say so.
    if (::mincore(reinterpret_cast<void*>(at), page, &present) != 0 || (present & 1) == 0) ++absent;
  }
  return absent <= kAbsentMax;
}

int numa_node_of(std::uintptr_t address, std::size_t size) {
  constexpr std::size_t kSamples = 16;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t count = std::clamp<std::size_t>(size / page, 1, kSamples);
  std::array<void*, kSamples> pages{};
  std::array<int, kSamples> nodes{};
  for (std::size_t i = 0; i < count; ++i) {
    pages[i] = reinterpret_cast<void*>((address + size / count * i) & ~(page - 1));
  }
  // Without nodes to move to it only tells where they are; what is not present has an error in place of a node.
  if (::syscall(SYS_move_pages, 0, count, pages.data(), nullptr, nodes.data(), 0) != 0) return -1;
  int found = -1;
  for (const int node : std::span(nodes).first(count)) {
    if (node < 0) continue;
    if (found >= 0 && node != found) return -1;
    found = node;
  }
  return found;
}

void touch_pages(std::uintptr_t address, std::size_t size, unsigned threads_max) {
  const unsigned threads = std::min(usable_cpus() / 2, threads_max);
  if (size < kTouchBytesMin || threads < 2 || mostly_present(address, size)) return;
  populate_pages(address, size, threads);
}

void in_parallel(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& job) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) job(i);
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < std::min<std::size_t>(threads, count); ++i) {
    try {
      others.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // No more threads to be had: these do it all.
    }
  }
  work();
  for (std::thread& thread : others) thread.join();
}

void populate_pages(std::uintptr_t address, std::size_t size, unsigned count) {
  const std::vector<PageSlice> slices = touch_slices(address, size, count);
  in_parallel(slices.size(), count, [&](std::size_t i) { populate(slices[i]); });
}

}  // namespace hawser::backend::verbs
