#include "backend/verbs/memory/mr_cache.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "backend/verbs/memory/registration_fake.h"
#include "base/rng.h"

namespace hawser::backend::verbs {
namespace {

class FakeClock final : public Clock {
 public:
  Instant now() const override { return at; }
  Instant at = Instant::from_ns(1);
};

/// Host memory with generations that a test sets, and allocations that no registration crosses.
class AllocatorSource final : public MemorySource {
 public:
  explicit AllocatorSource(std::shared_ptr<Domain> domain) : domain_(std::move(domain)) {}
  Result<std::vector<Made>> make(const Wanted& wanted) override {
    std::vector<Made> made;
    for (std::uintptr_t at = wanted.address, end = at + wanted.size; at < end;) {
      const auto allocation = --allocations.upper_bound(at);
      const std::uintptr_t stop = allocation->first + allocation->second.size;
      auto one = register_host(domain_, reinterpret_cast<const void*>(allocation->first), allocation->second.size,
                               wanted.access);
      if (!one) return one.error();
      made.push_back({*std::move(one), allocation->second.generation});
      at = stop;
    }
    return made;
  }
  std::uint64_t generation(std::uintptr_t address) override {
    return (--allocations.upper_bound(address))->second.generation;
  }
  struct Allocation {
    std::size_t size = 0;
    std::uint64_t generation = 0;
  };
  std::map<std::uintptr_t, Allocation> allocations;

 private:
  const std::shared_ptr<Domain> domain_;
};

constexpr std::uintptr_t kBase = 0x7f0000000000;

Wanted local(std::uintptr_t offset, std::size_t size, std::uint64_t generation = 0) {
  return {.address = kBase + offset, .size = size, .access = {.rights = Rights::kNone}, .generation = generation};
}
Wanted shared(std::uintptr_t offset, std::size_t size, Rights rights = Rights::kReadWrite) {
  return {.address = kBase + offset, .size = size, .access = {.rights = rights}};
}

class MrCacheTest : public testing::Test {
 protected:
  MrCacheTest() : fake_(std::make_shared<MemoryFake>()), domain_(Domain::open(fake_, "mock0").value()) {}
  ~MrCacheTest() override {
    cache_.reset();
    domain_.reset();
    host_.reset();
    EXPECT_EQ(fake_->alive(), 0);
    EXPECT_EQ(fake_->violations, 0);
  }
  MrCache& cache(const MrCacheLimits& limits = {}) {
    host_ = std::make_unique<HostSource>(domain_);
    cache_ = std::make_unique<MrCache>(*host_, limits, clock_);
    return *cache_;
  }
  std::shared_ptr<Registration> host(std::uintptr_t offset, std::size_t size, Rights rights = Rights::kReadWrite) {
    return register_host(domain_, reinterpret_cast<const void*>(kBase + offset), size, rights).value();
  }

  FakeClock clock_;
  std::shared_ptr<MemoryFake> fake_;
  std::shared_ptr<Domain> domain_;
  std::unique_ptr<HostSource> host_;
  std::unique_ptr<MrCache> cache_;
};

TEST_F(MrCacheTest, C14_SameRegionTwiceIsTheSameKeyAndSubRangesHit) {
  MrCache& cache = this->cache();
  const auto first = cache.acquire(shared(0, 8192)).value();
  const auto second = cache.acquire(shared(0, 8192)).value();
  const auto inside = cache.acquire(shared(4096, 100)).value();
  const auto own_use = cache.acquire(local(10, 10)).value();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first, second);
  EXPECT_EQ(first, inside);
  EXPECT_EQ(first, own_use) << "this process may use what peers may use";
  EXPECT_EQ(fake_->registrations, 1);
  const auto beyond = cache.acquire(shared(8000, 1000)).value();
  EXPECT_NE(beyond, first) << "part of it is not covered";
  const MrCacheCounters counters = cache.counters();
  EXPECT_EQ(counters.hits, 3u);
  EXPECT_EQ(counters.misses, 2u);
  EXPECT_EQ(counters.count, 2u);
  EXPECT_EQ(counters.bytes, 9192u);
}

TEST_F(MrCacheTest, C14_EvictionWhenMemoryDies) {
  MrCache& cache = this->cache();
  auto held = cache.acquire(local(0, 4096)).value();
  (void)cache.acquire(local(8192, 4096)).value();
  EXPECT_EQ(cache.invalidate(kBase + 4095, 1), 1u);
  EXPECT_EQ(fake_->memories, 2) << "an operation in flight still holds it";
  const auto again = cache.acquire(local(0, 4096)).value();
  EXPECT_NE(again, held) << "but nobody finds it any more";
  held.clear();
  EXPECT_EQ(cache.invalidate(0, ~std::size_t{0}), 2u);
  EXPECT_EQ(fake_->memories, 1);
  EXPECT_EQ(cache.counters().count, 0u);
}

TEST_F(MrCacheTest, C14_FailureOnOneNicDoesNotPoisonOthers) {
  auto fake = std::make_shared<MemoryFake>(std::initializer_list<std::string_view>{"good", "bad"});
  fake->fail_device = "bad";
  fake->fail_errno = EINVAL;
  HostSource good_source(Domain::open(fake, "good").value());
  HostSource bad_source(Domain::open(fake, "bad").value());
  MrCache good(good_source, {}, clock_);
  MrCache bad(bad_source, {}, clock_);
  EXPECT_EQ(bad.acquire(local(0, 4096)).error().device(), "bad");
  EXPECT_TRUE(good.acquire(local(0, 4096)).has_value());
  EXPECT_EQ(bad.acquire(local(0, 4096)).error().device(), "bad");
  EXPECT_EQ(bad.counters().repeated, 1u);
  EXPECT_TRUE(good.acquire(local(0, 4096)).has_value());
  fake->fail_device.clear();
  clock_.at = clock_.at + std::chrono::seconds(2);
  EXPECT_TRUE(bad.acquire(local(0, 4096)).has_value()) << "a failure is not remembered for good";
}

TEST_F(MrCacheTest, C14_StaleGenerationsAreRefused) {
  MrCache& cache = this->cache();
  const auto old = cache.acquire(local(0, 4096, 7)).value();
  EXPECT_EQ(cache.acquire(local(0, 4096, 7)).value(), old);
  const auto fresh = cache.acquire(local(0, 4096, 8)).value();
  EXPECT_NE(fresh, old);
  EXPECT_EQ(cache.counters().stale, 1u);
  EXPECT_EQ(cache.counters().count, 1u);
  EXPECT_EQ(cache.acquire(local(100, 100, 8)).value(), fresh);
}

TEST_F(MrCacheTest, TheSourceTellsGenerationsAndRangesMaySpanAllocations) {
  AllocatorSource source(domain_);
  source.allocations = {{kBase, {4096, 1}}, {kBase + 4096, {8192, 2}}, {kBase + 12288, {4096, 3}}};
  MrCache cache(source, {}, clock_);
  const auto spanning = cache.acquire(local(4000, 9000)).value();
  ASSERT_EQ(spanning.size(), 3u);
  EXPECT_EQ(fake_->registrations, 3);
  EXPECT_EQ(cache.acquire(local(5000, 6000)).value(), MrCache::Registrations{spanning[1]});
  EXPECT_EQ(cache.acquire(local(4000, 9000)).value(), spanning);
  source.allocations[kBase + 4096].generation = 9;  // Freed, and allocated again at the same address.
  const auto again = cache.acquire(local(4000, 9000)).value();
  ASSERT_EQ(again.size(), 3u);
  EXPECT_NE(again[1], spanning[1]);
  EXPECT_EQ(cache.counters().stale, 1u);
}

TEST_F(MrCacheTest, PeersGetTheRightsAskedForAndNoMore) {
  MrCache& cache = this->cache();
  const auto all = cache.acquire(shared(0, 4096, Rights::kReadWrite)).value();
  const auto read = cache.acquire(shared(0, 4096, Rights::kRead)).value();
  EXPECT_NE(all, read);
  EXPECT_EQ(read.front()->rights(), Rights::kRead);
  EXPECT_EQ(cache.acquire(shared(10, 10, Rights::kRead)).value(), read);
  EXPECT_EQ(cache.acquire(shared(10, 10, Rights::kReadWrite)).value(), all);
}

TEST_F(MrCacheTest, OwnedOnesServeLookUpsUntilTheyAreRemoved) {
  MrCache& cache = this->cache();
  MrReader reader(cache);
  EXPECT_FALSE(reader.find(kBase, 1));
  std::shared_ptr<Registration> region = host(0, 4096);
  cache.add(region);
  const Keys keys = reader.find(kBase + 100, 50);
  EXPECT_EQ(keys.lkey, region->lkey());
  EXPECT_EQ(keys.rkey, region->rkey());
  EXPECT_EQ(keys.iova, kBase + 100);
  EXPECT_EQ(keys.size, 50u);
  EXPECT_EQ(cache.acquire(local(0, 4096)).value().front(), region);
  EXPECT_NE(cache.acquire(shared(0, 4096)).value().front(), region) << "its keys are for its own peers";
  EXPECT_TRUE(cache.remove(*region));
  EXPECT_FALSE(cache.remove(*region));
  EXPECT_EQ(cache.invalidate(kBase, 4096), 1u);
  EXPECT_FALSE(reader.find(kBase + 100, 50)) << "the reader sees it at once";
  EXPECT_EQ(fake_->memories, 1);
  region.reset();
  EXPECT_EQ(fake_->memories, 0) << "neither cache nor reader keeps it";
}

TEST_F(MrCacheTest, WhoIsRemovedIsToldWhetherOthersMayHaveFoundIt) {
  MrCache& cache = this->cache();
  MrReader reader(cache);
  std::uint64_t found_before = 1;
  const auto is_told_by = [&](const std::shared_ptr<Registration>& one) {
    const std::uint64_t version = reader.version();
    EXPECT_TRUE(cache.remove(*one, &found_before));
    EXPECT_TRUE(found_before == 0 || (version < found_before && reader.version() >= found_before));
    return found_before != 0;
  };
  const std::vector<std::shared_ptr<Registration>> apart = {host(0, 100), host(100, 100), host(200, 100)};
  for (const auto& each : apart) cache.add(each);
  EXPECT_FALSE(is_told_by(apart[1]));
  const std::shared_ptr<Registration> large = host(0, 4096), twin = host(200, 100), within = host(1000, 10);
  for (const auto& each : {large, twin, within}) cache.add(each);
  EXPECT_TRUE(is_told_by(within)) << "it lies in a larger one";
  EXPECT_TRUE(is_told_by(twin));
  EXPECT_TRUE(is_told_by(large)) << "others lie in it";
  EXPECT_FALSE(is_told_by(apart[2]));
  std::vector<std::shared_ptr<Registration>> many;
  cache.add(large);
  for (std::uintptr_t i = 0; i < 1000; ++i) cache.add(many.emplace_back(host(i, 1)));
  const std::shared_ptr<Registration> last = host(2000, 1);
  cache.add(last);
  EXPECT_TRUE(is_told_by(last)) << "what lies too far before it to be looked at";
}

TEST_F(MrCacheTest, AReaderTellsHowFarARegistrationReaches) {
  MrCache& cache = this->cache();
  const std::vector<std::shared_ptr<Registration>> regions = {host(0, 4096), host(4096, 4096), host(1000, 100)};
  for (const auto& region : regions) cache.add(region);
  MrReader reader(cache);
  Keys keys = reader.find(kBase + 4000, 200);
  EXPECT_EQ(keys.size, 96u);
  EXPECT_EQ(keys.lkey, regions[0]->lkey());
  keys = reader.find(kBase + 4096, 104);
  EXPECT_EQ(keys.size, 104u);
  EXPECT_EQ(keys.lkey, regions[1]->lkey());
  EXPECT_EQ(reader.find(kBase + 1000, 200).size, 200u) << "the one that reaches further answers";
  EXPECT_EQ(reader.find(kBase + 8191, 1).size, 1u);
  EXPECT_FALSE(reader.find(kBase + 8192, 1));
  EXPECT_FALSE(reader.find(kBase - 1, 10));
}

TEST_F(MrCacheTest, IdleOnesAreEvictedOldestFirstAndPinnedOnesNever) {
  MrCache& cache = this->cache({.count_max = 3});
  const auto pinned = cache.acquire(local(0, 4096)).value();
  (void)cache.acquire(local(10000, 4096)).value();
  (void)cache.acquire(local(20000, 4096)).value();
  (void)cache.acquire(local(10000, 4096)).value();  // Used again.
  (void)cache.acquire(local(30000, 4096)).value();
  EXPECT_EQ(cache.counters().evictions, 1u);
  EXPECT_EQ(cache.acquire(local(0, 4096)).value(), pinned);
  MrReader reader(cache);
  EXPECT_TRUE(reader.find(kBase + 10000, 1));
  EXPECT_FALSE(reader.find(kBase + 20000, 1));
  EXPECT_TRUE(reader.find(kBase + 30000, 1));
  EXPECT_EQ(cache.counters().count, 3u);
}

TEST_F(MrCacheTest, BytesAreBoundedAndPinnedOnesMayExceedTheBound) {
  MrCache& cache = this->cache({.bytes_max = 10000});
  std::vector<MrCache::Registrations> pinned;
  for (std::uintptr_t i = 0; i < 4; ++i) pinned.push_back(cache.acquire(local(i * 8192, 4096)).value());
  EXPECT_EQ(cache.counters().bytes, 4u * 4096);
  EXPECT_EQ(cache.counters().evictions, 0u);
  pinned.clear();
  (void)cache.acquire(local(100000, 4096)).value();
  EXPECT_LE(cache.counters().bytes, 10000u);
  EXPECT_EQ(fake_->memories, 2);
}

TEST_F(MrCacheTest, ALargerRegistrationTakesThePlaceOfThoseItCovers) {
  MrCache& cache = this->cache();
  for (std::uintptr_t i = 0; i < 10; ++i) (void)cache.acquire(local(i * 4096, 4096)).value();
  const auto large = cache.acquire(local(0, 100000)).value();
  EXPECT_EQ(cache.counters().count, 1u);
  EXPECT_EQ(fake_->memories, 1);
  EXPECT_EQ(cache.acquire(local(4096, 4096)).value(), large);
}

TEST_F(MrCacheTest, LackOfLockedMemoryEvictsWhatIsIdleAndTriesAgain) {
  MrCache& cache = this->cache();
  fake_->bytes_max = 8192;
  const auto pinned = cache.acquire(local(0, 4096)).value();
  (void)cache.acquire(local(10000, 4096)).value();
  EXPECT_TRUE(cache.acquire(local(20000, 4096)).has_value());
  EXPECT_EQ(cache.counters().evictions, 1u);
  const auto second = cache.acquire(local(30000, 4096)).value();
  EXPECT_EQ(cache.acquire(local(40000, 4096)).error().code(), Code::kBusy);
  EXPECT_EQ(cache.acquire(local(40000, 4096)).error().code(), Code::kBusy);
  EXPECT_EQ(cache.counters().repeated, 1u);
  EXPECT_TRUE(cache.remove(*pinned.front()));
  EXPECT_EQ(cache.acquire(local(40000, 4096)).error().code(), Code::kBusy);
  EXPECT_EQ(cache.counters().repeated, 1u) << "something was let go, so it was tried";
}

TEST_F(MrCacheTest, RememberedFailuresAreBounded) {
  MrCache& cache = this->cache({.failures_max = 2});
  fake_->fail_device = "mock0";
  fake_->fail_errno = EINVAL;
  for (std::uintptr_t i = 0; i < 3; ++i) EXPECT_FALSE(cache.acquire(local(i * 4096, 100)));
  EXPECT_FALSE(cache.acquire(local(0, 100)));
  EXPECT_EQ(cache.counters().repeated, 0u) << "the oldest was forgotten";
  EXPECT_FALSE(cache.acquire(local(2 * 4096, 100)));
  EXPECT_EQ(cache.counters().repeated, 1u);
}

TEST(MrCache, FailureOfEachCallLeaksNothing) {
  const int calls = fail_each_call<MemoryFake>([](const std::shared_ptr<MemoryFake>& fake) {
    const Result<std::shared_ptr<Domain>> domain = Domain::open(fake, "mock0");
    if (!domain) return false;
    AllocatorSource source(*domain);
    source.allocations = {{kBase, {4096, 1}}, {kBase + 4096, {8192, 2}}};
    MrCache cache(source, {.failure_ttl = Duration::zero()});
    const auto spanning = cache.acquire(local(0, 12288));
    const auto single = cache.acquire(local(4096, 4096));
    return spanning.has_value() && single.has_value();
  });
  EXPECT_EQ(calls, 6);
}

/// Against a plain list of registrations: what a reader finds covers, and what it does not find nothing covers.
TEST_F(MrCacheTest, AgreesWithASearchOfAllEntries) {
  MrCache& cache = this->cache({.count_max = 20});
  MrReader reader(cache);
  base::Rng rng(7);
  std::vector<std::shared_ptr<Registration>> owned;
  for (int round = 0; round < 12000; ++round) {
    const std::uintptr_t offset = rng.below(4000);
    const std::size_t size = 1 + rng.below(300);
    const bool changes = round % 40 < 8;  // Then it is quiet, so that snapshots are made, too.
    if (changes && rng.below(2) == 0) {
      owned.push_back(host(offset, size));
      cache.add(owned.back());
    } else if (changes && !owned.empty()) {
      const std::size_t at = rng.below(owned.size());
      EXPECT_TRUE(cache.remove(*owned[at]));
      owned.erase(owned.begin() + static_cast<std::ptrdiff_t>(at));
    }
    std::uint64_t reach = 0;
    for (const auto& one : owned) {
      if (one->covers(kBase + offset, 1)) reach = std::max(reach, one->end() - (kBase + offset));
    }
    const Keys keys = reader.find(kBase + offset, 100);
    if (keys) {
      EXPECT_GE(reach, keys.size);
    }
    EXPECT_EQ(keys.size == 100, reach >= 100);
  }
}

TEST_F(MrCacheTest, ManyThatOverlapAreSearchedAllTheSame) {
  MrCache& cache = this->cache();
  const std::shared_ptr<Registration> large = host(0, 1 << 20);
  cache.add(large);
  std::vector<std::shared_ptr<Registration>> small;
  for (std::uintptr_t i = 1; i < 100; ++i) {
    small.push_back(host(i * 100, 50));
    cache.add(small.back());
  }
  MrReader reader(cache);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(reader.find(kBase + 9990, 100).lkey, large->lkey());
    EXPECT_EQ(reader.find(kBase + 9900, 10).size, 10u);
    EXPECT_FALSE(reader.find(kBase + (2 << 20), 10));
  }
  EXPECT_EQ(cache.acquire(local(9990, 100)).value().front(), large);
}

}  // namespace
}  // namespace hawser::backend::verbs
