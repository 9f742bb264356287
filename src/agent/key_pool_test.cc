#include "agent/key_pool.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <unordered_set>

#include <gtest/gtest.h>

namespace hawser::agent {
namespace {

TEST(KeyPoolTest, GivesEachKeyOnce) {
  KeyPool pool, other;
  std::unordered_set<base::Id128> seen;
  constexpr std::size_t kTaken = 3 * KeyPool::kKeys + 1;
  for (std::size_t i = 0; i < kTaken; ++i) {
    const base::Id128 key = pool.take();
    EXPECT_FALSE(key.is_zero());
    seen.insert(key);
    seen.insert(other.take());
  }
  EXPECT_EQ(seen.size(), 2 * kTaken);
}

TEST(KeyPoolTest, DrawsManyAtATimeAndOnlyWhenAsked) {
  KeyPool pool;
  EXPECT_EQ(pool.left(), 0u);
  (void)pool.take();
  const std::size_t left = pool.left();
  if (left == 0) GTEST_SKIP() << "the kernel does not empty pages at a fork";
  for (std::size_t i = 0; i < left; ++i) (void)pool.take();
  EXPECT_EQ(pool.left(), 0u);
  EXPECT_FALSE(pool.take().is_zero());
}

/// What a forked child tells its parent.
template <typename Tell>
std::array<base::Id128, 2> of_child(Tell tell) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  std::array<base::Id128, 2> told{};
  if (child == 0) {
    told = tell();
    ::_exit(::write(ends[1], told.data(), sizeof told) == sizeof told ? 0 : 1);
  }
  ::close(ends[1]);
  EXPECT_EQ(::read(ends[0], told.data(), sizeof told), static_cast<ssize_t>(sizeof told));
  ::close(ends[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return told;
}

TEST(KeyPoolTest, AForkedChildDrawsItsOwn) {
  KeyPool pool;
  std::unordered_set<base::Id128> all{pool.take()};
  // The child's first are those that the parent would give next, if it had them.
  const auto drawn = of_child([&] { return std::array{pool.take(), pool.take()}; });
  for (const base::Id128& key : drawn) {
    EXPECT_FALSE(key.is_zero());
    EXPECT_TRUE(all.insert(key).second);
  }
  const std::size_t left = pool.left();
  for (std::size_t i = 0; i <= left; ++i) EXPECT_TRUE(all.insert(pool.take()).second) << "key " << i;
  const auto store = of_child([&] { return std::array{base::Id128{0, pool.left()}, base::Id128{}}; });
  EXPECT_EQ(store[0].lo, 0u) << "a child finds keys of its parent";
}

}  // namespace
}  // namespace hawser::agent
