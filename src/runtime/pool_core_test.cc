#include "runtime/pool_core.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/made_buffer.h"

namespace hawser::runtime {
namespace {

using Tier = BufferPool::Tier;

TEST(PoolCore, TakesOfTheSmallestTierThatHasOne) {
  PoolCore pool({{.bytes = 10, .count = 1}, {.bytes = 100, .count = 1}}, BufferPool::Beyond::kAllocate);
  std::optional<PoolCore::Buffer> first = pool.take(5), second = pool.take(5);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->tier, 0U);
  EXPECT_EQ(second->tier, 1U);
  EXPECT_FALSE(pool.take(5));
  EXPECT_FALSE(pool.take(101));
  EXPECT_EQ(pool.statistics().beyond, 2U);
  std::byte* const place = first->bytes.get();
  pool.give_back(std::move(*first));
  const std::optional<PoolCore::Buffer> again = pool.take(10);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->bytes.get(), place);  // Kept meanwhile.
}

TEST(PoolCore, CountsAndTrims) {
  PoolCore pool({{.bytes = 10, .count = 3}}, BufferPool::Beyond::kAllocate);
  std::optional<PoolCore::Buffer> one = pool.take(1), two = pool.take(1);
  pool.give_back(std::move(*one));
  BufferPool::TierStatistics counts = pool.statistics().tiers[0];
  EXPECT_EQ(counts.made, 2U);
  EXPECT_EQ(counts.used, 1U);
  EXPECT_EQ(counts.most_used, 2U);
  EXPECT_EQ(counts.taken, 2U);
  EXPECT_EQ(pool.statistics().bytes, 20U);
  pool.trim();
  EXPECT_EQ(pool.statistics().bytes, 10U);  // The other one is in use.
  pool.give_back(std::move(*two));
  pool.trim();
  EXPECT_EQ(pool.statistics().bytes, 0U);
}

TEST(BufferPoolTiers, WrongOnesAreRefused) {
  const auto refused = [](std::vector<Tier> tiers) {
    return BufferPool::with_tiers(tiers).error().code() == Code::kInvalid;
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({{.bytes = 0, .count = 1}}));
  EXPECT_TRUE(refused({{.bytes = 1, .count = 0}}));
  EXPECT_TRUE(refused({{.bytes = 8, .count = 1}, {.bytes = 8, .count = 2}}));
  EXPECT_TRUE(refused({{.bytes = (std::size_t{1} << 30) + 1, .count = 1}}));
  EXPECT_TRUE(refused(std::vector<Tier>(BufferPool::kTiersMax + 1, Tier{.bytes = 1, .count = 1})));
  EXPECT_TRUE(BufferPool::training().valid());
  EXPECT_EQ(BufferPool::inference().statistics().tiers.size(), 3U);
  EXPECT_EQ(BufferPool::training().statistics().bytes, 0U);  // None is made before it is needed.
  EXPECT_TRUE(BufferPool().statistics().tiers.empty());
}

TEST(BufferSource, CountsWhatIsNotOfThePool) {
  const std::array<Tier, 1> tiers{{{.bytes = 16, .count = 1}}};
  const BufferPool pool = BufferPool::with_tiers(tiers).value();
  auto source = std::make_unique<BufferSource>(pool);
  MadeBuffer pooled = source->make(16).value(), own = source->make(16).value(), none = source->make(0).value();
  EXPECT_EQ(source->held(), 16U);
  EXPECT_EQ(pool.statistics().tiers[0].used, 1U);
  own.reset();
  EXPECT_EQ(source->held(), 0U);
  source.reset();
  pooled.reset();  // After its source.
  EXPECT_EQ(pool.statistics().tiers[0].used, 0U);
}

TEST(PoolCore, SeveralThreadsShareIt) {
  PoolCore pool({{.bytes = 8, .count = 4}}, BufferPool::Beyond::kAllocate);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&pool] {
      for (int round = 0; round < 2000; ++round) {
        if (std::optional<PoolCore::Buffer> taken = pool.take(8)) pool.give_back(std::move(*taken));
      }
    });
  }
  for (std::thread& each : threads) each.join();
  const BufferPool::Statistics all = pool.statistics();
  EXPECT_EQ(all.tiers[0].used, 0U);
  EXPECT_LE(all.tiers[0].made, 3U);
  EXPECT_EQ(all.tiers[0].taken + all.beyond, 6000U);
}

}  // namespace
}  // namespace hawser::runtime
