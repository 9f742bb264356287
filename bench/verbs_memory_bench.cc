// What registered memory costs: look-ups of keys, hits and misses of the registration cache, and pages made present
// before a registration.
//
//   verbs_memory_bench [device] [MiB]
//
// Look-ups and the cache run on a fake of libibverbs, so that what is measured is ours alone. Registrations run on
// `device` where one is named; without one only the touching of pages is measured. Times are medians of 7.

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backend/verbs/library/libibverbs.h"
#include "backend/verbs/memory/mr_cache.h"
#include "backend/verbs/memory/registration_fake.h"
#include "backend/verbs/memory/registration_pages.h"
#include "base/rng.h"

namespace {

using namespace hawser;                  // NOLINT: a program
using namespace hawser::backend::verbs;  // NOLINT

constexpr std::uintptr_t kBase = 0x7f0000000000;
constexpr std::size_t kRegion = 1 << 20;
constexpr int kRepeats = 7;

/// Median of the nanoseconds that `work` takes, per one of `count`; `before` is not counted.
double median_ns(std::size_t count, const std::function<void()>& before, const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < kRepeats; ++i) {
    before();
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    times.push_back(took.count() / static_cast<double>(count));
  }
  std::sort(times.begin(), times.end());
  return times[kRepeats / 2];
}

void nothing() {}

Wanted own_use(std::size_t region, std::size_t size = kRegion) {
  return {.address = kBase + region * kRegion, .size = size, .access = {.rights = Rights::kNone}};
}

void look_ups(MrCache& cache, std::size_t regions) {
  constexpr std::size_t kCount = 1 << 20;
  MrReader reader(cache);
  base::Rng rng(1);
  std::vector<std::uintptr_t> same(kCount), any(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    same[i] = kBase + rng.below(kRegion - 64);
    any[i] = kBase + rng.below(regions) * kRegion + rng.below(kRegion - 64);
  }
  std::uint64_t sum = 0;
  const auto run = [&](const std::vector<std::uintptr_t>& addresses) {
    return median_ns(kCount, nothing, [&] {
      for (const std::uintptr_t address : addresses) sum += reader.find(address, 64).lkey;
    });
  };
  const double of_same = run(same);
  const double of_any = run(any);
  std::printf("%6zu regions: look-up in the same region %.1f ns, in any %.1f ns (%s)\n", regions, of_same, of_any,
              sum != 0 ? "found" : "not found");
}

void cache_costs(const std::shared_ptr<Domain>& domain, std::size_t regions) {
  HostSource source(domain);
  MrCache cache(source, {.bytes_max = ~0ull, .count_max = regions});
  for (std::size_t i = 0; i < regions; ++i) (void)cache.acquire(own_use(i)).value();
  look_ups(cache, regions);
  constexpr std::size_t kCount = 1000;
  const double hit = median_ns(kCount, nothing, [&] {
    for (std::size_t i = 0; i < kCount; ++i) (void)cache.acquire(own_use(i % regions, 100)).value();
  });
  std::size_t next = regions;
  const double miss = median_ns(kCount, nothing, [&] {
    for (std::size_t i = 0; i < kCount; ++i) (void)cache.acquire(own_use(next++)).value();
  });
  std::printf("%6zu regions: acquire with a hit %.0f ns, with a miss and an eviction %.0f ns beside the device's\n",
              regions, hit, miss);
}

/// Fresh memory of `size` bytes, registered in one of three ways.
class Fresh {
 public:
  explicit Fresh(std::size_t size) : size_(size) {}
  ~Fresh() { drop(); }
  void renew() {
    drop();
    void* memory = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::exit(1);
    // Pages of 4 KiB, the worst case: huge pages are there in a 512th of the steps.
    ::madvise(memory, size_, MADV_NOHUGEPAGE);
    memory_ = memory;
  }
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(memory_); }
  std::size_t size() const { return size_; }

 private:
  void drop() {
    if (memory_ != nullptr) ::munmap(memory_, size_);
    memory_ = nullptr;
  }
  const std::size_t size_;
  void* memory_ = nullptr;
};

void touching(std::size_t size) {
  Fresh memory(size);
  const auto renew = [&] { memory.renew(); };
  const auto populate = [&](unsigned threads) {
    return median_ns(1, renew, [&] { populate_pages(memory.address(), memory.size(), threads); }) / 1e6;
  };
  const unsigned cpus = std::min(std::thread::hardware_concurrency(), kTouchThreadsMax);
  const double one = populate(1);
  const double all = populate(cpus);
  const double again = median_ns(1, nothing, [&] { touch_pages(memory.address(), memory.size()); }) / 1e6;
  std::printf("%zu MiB of fresh pages: present after %.1f ms by 1 thread, %.1f ms by %u; %.3f ms when present\n",
              size >> 20, one, all, cpus, again);
}

void registering(const std::shared_ptr<Domain>& domain, std::size_t size) {
  Fresh memory(size);
  const auto renew = [&] { memory.renew(); };
  const auto plain = [&] {
    ibv_mr* mr = domain->verbs().reg_mr(domain->pd(), reinterpret_cast<void*>(memory.address()), memory.size(),
                                        IBV_ACCESS_LOCAL_WRITE);
    if (mr == nullptr) std::exit((std::perror("ibv_reg_mr"), 1));
    domain->verbs().dereg_mr(mr);
  };
  const auto touched = [&] {
    populate_pages(memory.address(), memory.size(), std::min(std::thread::hardware_concurrency(), kTouchThreadsMax));
    (void)register_host(domain, reinterpret_cast<void*>(memory.address()), memory.size(), Rights::kNone).value();
  };
  const double fresh = median_ns(1, renew, plain) / 1e6;
  const double present = median_ns(1, nothing, plain) / 1e6;
  const double ours = median_ns(1, renew, touched) / 1e6;
  std::printf("%zu MiB on %s: registered and deregistered in %.1f ms fresh, %.1f ms present, %.1f ms touched first\n",
              size >> 20, domain->name().c_str(), fresh, present, ours);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t size = std::strtoull(argc > 2 ? argv[2] : "1024", nullptr, 10) << 20;
  const std::shared_ptr<Domain> fake = Domain::open(std::make_shared<MemoryFake>(), "mock0").value();
  for (const std::size_t regions : {1u, 64u, 1024u, 4096u}) cache_costs(fake, regions);
  touching(size);
  if (argc < 2) return 0;
  std::shared_ptr<Verbs> verbs = open_libibverbs().value();
  registering(Domain::open(verbs, argv[1]).value(), size);
  return 0;
}
