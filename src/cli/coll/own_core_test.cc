#include "cli/coll/own_core.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace hawser::cli::coll {
namespace {

cpu_set_t now() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  return set;
}

TEST(OwnCore, IsOneOfThoseThatTheProcessMayUseAndThenAllAgain) {
  const cpu_set_t all = now();
  const auto cores = static_cast<std::uint32_t>(CPU_COUNT(&all));
  {
    const OwnCore first(0, cores);
    EXPECT_TRUE(first.is_kept());
    const cpu_set_t own = now();
    EXPECT_EQ(CPU_COUNT(&own), 1);
    cpu_set_t both;
    CPU_AND(&both, &own, &all);
    EXPECT_TRUE(CPU_EQUAL(&both, &own));
  }
  const cpu_set_t after = now();
  EXPECT_TRUE(CPU_EQUAL(&after, &all));
}

TEST(OwnCore, ThreadsThatThereAreMoveToo) {
  std::atomic<int> step{0};
  std::atomic<int> cores{0};
  std::thread other([&] {
    while (step.load() == 0) std::this_thread::yield();
    const cpu_set_t set = now();
    cores = CPU_COUNT(&set);
    step = 2;
    while (step.load() == 2) std::this_thread::yield();
  });
  {
    const OwnCore own(0, 1);
    step = 1;
    while (step.load() == 1) std::this_thread::yield();
  }
  step = 3;
  other.join();
  EXPECT_EQ(cores, 1);
}

TEST(OwnCore, NobodyHasOneWhereThereAreFewerCoresThanRanks) {
  const cpu_set_t all = now();
  const OwnCore none(0, static_cast<std::uint32_t>(CPU_COUNT(&all)) + 1);
  EXPECT_FALSE(none.is_kept());
  const cpu_set_t after = now();
  EXPECT_TRUE(CPU_EQUAL(&after, &all));
}

}  // namespace
}  // namespace hawser::cli::coll
