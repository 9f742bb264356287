#include "base/mpsc_ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace hawser::base {
namespace {

TEST(MpscRing, IsFirstInFirstOutAndBounded) {
  MpscRing<int> ring(4);
  EXPECT_TRUE(ring.empty());
  int out = -1;
  EXPECT_FALSE(ring.try_pop(out));
  EXPECT_EQ(out, -1);
  for (int lap = 0; lap < 5; ++lap) {
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(ring.try_push(10 * lap + i));
    EXPECT_FALSE(ring.try_push(99));
    EXPECT_FALSE(ring.empty());
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(ring.try_pop(out));
      EXPECT_EQ(out, 10 * lap + i);
    }
    EXPECT_TRUE(ring.empty());
  }
}

TEST(MpscRing, AFullRingLeavesTheValueAlone) {
  MpscRing<std::unique_ptr<int>> ring(2);
  EXPECT_TRUE(ring.try_push(std::make_unique<int>(1)));
  EXPECT_TRUE(ring.try_push(std::make_unique<int>(2)));
  auto third = std::make_unique<int>(3);
  EXPECT_FALSE(ring.try_push(std::move(third)));
  ASSERT_NE(third, nullptr);  // NOLINT: refused, so not moved
  std::unique_ptr<int> out;
  EXPECT_TRUE(ring.try_pop(out));
  EXPECT_EQ(*out, 1);
  EXPECT_TRUE(ring.try_push(std::move(third)));
  EXPECT_EQ(third, nullptr);
}

/// Moved into a ring it waits to be let in.
class Slow {
 public:
  Slow() = default;
  explicit Slow(std::atomic<int>* gate) : gate_(gate) {}
  Slow(Slow&& other) noexcept : gate_(other.gate_) {
    if (gate_ == nullptr) return;
    gate_->store(1);
    while (gate_->load() != 2) std::this_thread::yield();
    gate_ = nullptr;
  }
  Slow& operator=(Slow&& other) noexcept = default;

 private:
  std::atomic<int>* gate_ = nullptr;
};

TEST(MpscRing, KnowsOfAPushThatHasBegun) {
  MpscRing<Slow> ring(4);
  const std::size_t nothing = ring.end();
  EXPECT_FALSE(ring.holds_before(nothing));
  std::atomic<int> gate{0};
  std::thread producer([&] { ring.try_push(Slow(&gate)); });
  while (gate.load() != 1) std::this_thread::yield();
  EXPECT_TRUE(ring.try_push(Slow()));
  EXPECT_FALSE(ring.holds_before(nothing));
  const std::size_t both = ring.end();
  EXPECT_TRUE(ring.empty()) << "the second is behind the first";
  EXPECT_TRUE(ring.holds_before(both));
  EXPECT_FALSE(ring.await_front(std::chrono::milliseconds(5)));
  gate = 2;
  EXPECT_TRUE(ring.await_front(std::chrono::seconds(30)));
  producer.join();
  Slow out;
  EXPECT_TRUE(ring.try_pop(out));
  EXPECT_TRUE(ring.holds_before(both));
  EXPECT_TRUE(ring.try_pop(out));
  EXPECT_FALSE(ring.holds_before(both));
}

TEST(MpscRing, DestroysWhatIsLeft) {
  const auto counted = std::make_shared<int>(0);
  {
    MpscRing<std::shared_ptr<int>> ring(8);
    for (int i = 0; i < 5; ++i) ring.try_push(std::shared_ptr<int>(counted));
    std::shared_ptr<int> out;
    ring.try_pop(out);
    out.reset();
    EXPECT_EQ(counted.use_count(), 5);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

TEST(MpscRing, ManyProducersLoseNothingAndKeepTheirOrder) {
  constexpr std::uint64_t kProducers = 3;
  constexpr std::uint64_t kEach = 20'000;
  MpscRing<std::uint64_t> ring(64);
  std::vector<std::thread> producers;
  for (std::uint64_t p = 0; p < kProducers; ++p) {
    producers.emplace_back([&ring, p] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        while (!ring.try_push(p << 32 | i)) std::this_thread::yield();
      }
    });
  }
  std::uint64_t next[kProducers] = {};
  std::uint64_t value = 0;
  for (std::uint64_t taken = 0; taken < kProducers * kEach;) {
    if (!ring.try_pop(value)) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(value & 0xffffffff, next[value >> 32]++);
    ++taken;
  }
  for (std::thread& producer : producers) producer.join();
  EXPECT_TRUE(ring.empty());
}

// Memory comes with the first push, and each of these may be that.
TEST(MpscRing, FirstProducersAtOnceLoseNothing) {
  for (int round = 0; round < 200; ++round) {
    MpscRing<int> ring(8);
    EXPECT_TRUE(ring.empty());
    std::atomic<int> ready{0};
    std::vector<std::thread> producers;
    for (int p = 0; p < 3; ++p) {
      producers.emplace_back([&ring, &ready, p] {
        ++ready;
        while (ready < 3) std::this_thread::yield();
        EXPECT_TRUE(ring.try_push(1 << p));
      });
    }
    int found = 0, value = 0;
    for (int taken = 0; taken < 3;) {
      if (!ring.try_pop(value)) {
        std::this_thread::yield();
        continue;
      }
      found |= value;
      ++taken;
    }
    for (std::thread& producer : producers) producer.join();
    ASSERT_EQ(found, 7);
  }
}

TEST(MpscRingDeathTest, ACapacityIsAPowerOfTwo) { EXPECT_DEATH(MpscRing<int>(3), "power of two"); }

}  // namespace
}  // namespace hawser::base
