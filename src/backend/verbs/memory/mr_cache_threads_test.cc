// The registration cache under threads, for ThreadSanitizer too; and pages made present by several.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "backend/verbs/memory/mr_cache.h"
#include "backend/verbs/memory/registration_fake.h"
#include "backend/verbs/memory/registration_pages.h"
#include "base/rng.h"

namespace hawser::backend::verbs {
namespace {

constexpr std::uintptr_t kBase = 0x7f0000000000;
constexpr std::size_t kRegion = 65536;
constexpr int kRounds = 4000;

class LockedFake final : public MemoryFake {
 public:
  ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t size, int access) override {
    const std::scoped_lock lock(mutex_);
    return MemoryFake::reg_mr(pd, address, size, access);
  }
  int dereg_mr(ibv_mr* mr) override {
    const std::scoped_lock lock(mutex_);
    return MemoryFake::dereg_mr(mr);
  }

 private:
  std::mutex mutex_;
};

Wanted own_use(std::uint64_t region, std::uint64_t generation) {
  return {.address = kBase + (100 + region) * kRegion,
          .size = kRegion,
          .access = {.rights = Rights::kNone},
          .generation = generation};
}

TEST(MrCacheThreads, WhatIsHeldIsFoundWhateverOthersDo) {
  auto fake = std::make_shared<LockedFake>();
  std::shared_ptr<Domain> domain = Domain::open(fake, "mock0").value();
  HostSource source(domain);
  MrCache cache(source, {.count_max = 30});
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      threads.emplace_back([&, seed] {  // Others: make, drop, make stale.
        base::Rng rng(seed);
        for (int i = 0; i < kRounds; ++i) {
          const Wanted wanted = own_use(rng.below(40), 1 + rng.below(2));
          const auto held = cache.acquire(wanted);
          wrong += held && held->front()->covers(wanted.address, wanted.size) ? 0 : 1;
          if (rng.below(10) == 0) cache.invalidate(wanted.address, 1);
        }
      });
      threads.emplace_back([&, seed] {  // A data path with a region of its own.
        MrReader reader(cache);
        const std::uintptr_t address = kBase + seed * kRegion;
        for (int i = 0; i < kRounds; ++i) {
          const auto region =
              register_host(domain, reinterpret_cast<const void*>(address), kRegion, Rights::kReadWrite).value();
          cache.add(region);
          for (int j = 0; j < 30; ++j) wrong += reader.find(address + 5, 100).lkey == region->lkey() ? 0 : 1;
          wrong += cache.remove(*region) ? 0 : 1;
          wrong += reader.find(address + 5, 100) ? 1 : 0;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(cache.counters().count, 40u);
  cache.invalidate(0, ~std::size_t{0});
  EXPECT_EQ(fake->memories, 0);
}

TEST(RegistrationPagesThreads, ContentsStay) {
  constexpr std::size_t kSize = kTouchBytesMin + (3 << 20);
  void* memory = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto start = reinterpret_cast<std::uintptr_t>(memory);
  auto* bytes = static_cast<unsigned char*>(memory);
  bytes[kSize / 3] = 42;
  populate_pages(start + 100, kSize - 200, 3);
  EXPECT_TRUE(mostly_present(start, kSize));
  EXPECT_EQ(bytes[kSize / 3], 42);
  EXPECT_EQ(bytes[0] + bytes[kSize - 1], 0);
  ::munmap(memory, kSize);
}

}  // namespace
}  // namespace hawser::backend::verbs
