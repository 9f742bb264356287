#include "backend/verbs/gpu/segments.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/verbs/gpu/gpu_driver_fake.h"
#include "backend/verbs/memory/registration_fake.h"

namespace hawser::backend::verbs {
namespace {

constexpr std::uintptr_t kBase = 0x7f0000000000;
constexpr std::size_t kStep = 2 << 20;

class FakeClock final : public Clock {
 public:
  Instant now() const override { return at; }
  Instant at = Instant::from_ns(1);
};

/// Indirect keys as a device with room for `max` pieces has them.
class FakeKeys final : public IndirectKeys {
 public:
  explicit FakeKeys(std::size_t max) : max_(max) {}
  std::function<bool()> fails = [] { return false; };
  int bound = 0;
  int alive = 0;

  std::size_t pieces_max() const override { return max_; }
  Result<std::shared_ptr<Registration>> bind(const std::vector<std::shared_ptr<Registration>>& pieces,
                                             const Access& access) override {
    if (fails()) return Status(Code::kFailed, "told to fail");
    auto key = std::make_unique<Key>(*this, pieces);
    const std::uintptr_t begin = pieces.front()->address();
    const Registration::Range range{begin, pieces.back()->end() - begin, 0, pieces.front()->gpu()};
    const auto& domain = pieces.front()->domain();
    return std::make_shared<Registration>(domain, std::move(key), range, access_flags(access));
  }

 private:
  struct Key final : BoundKey {
    Key(FakeKeys& of, std::vector<std::shared_ptr<Registration>> list)
        : owner(of), pieces(std::move(list)), number(static_cast<std::uint32_t>(1000 + ++of.bound)) {
      ++owner.alive;
    }
    ~Key() override { --owner.alive; }
    std::uint32_t lkey() const override { return number; }
    std::uint32_t rkey() const override { return number; }
    FakeKeys& owner;
    std::vector<std::shared_ptr<Registration>> pieces;
    std::uint32_t number;
  };
  std::size_t max_;
};

class SegmentTableTest : public testing::Test {
 protected:
  SegmentTableTest() : fake_(std::make_shared<MemoryFake>()), domain_(Domain::open(fake_, "mock0").value()) {
    map(0, 1, 1);
    segments_ = {{{kBase, kBase + kStep}}};
  }
  ~SegmentTableTest() override {
    table_.reset();
    domain_.reset();
    EXPECT_EQ(keys_.alive, 0);
    EXPECT_EQ(fake_->alive(), 0);
    EXPECT_EQ(fake_->violations, 0);
  }
  /// Steps [from, to) are mapped, each an allocation with ids from `id` on.
  void map(std::size_t from, std::size_t to, std::uint64_t id) {
    for (std::size_t i = from; i < to; ++i) gpu_.allocations[kBase + i * kStep] = {kStep, id + i - from};
  }
  void grow_to(std::size_t steps) {
    map(0, steps, 1);
    segments_.front().range.end = kBase + steps * kStep;
  }
  SegmentTable& table(IndirectKeys* keys, const SegmentLimits& limits = {}) {
    const auto provider = [this]() -> Result<std::vector<Segment>> {
      ++asked_;
      if (!provider_failure_.ok()) return provider_failure_;
      return segments_;
    };
    table_ = std::make_unique<SegmentTable>(domain_, gpu_, provider, keys, Access{}, limits, clock_);
    return *table_;
  }

  FakeClock clock_;
  GpuFake gpu_;
  FakeKeys keys_{4};
  std::shared_ptr<MemoryFake> fake_;
  std::shared_ptr<Domain> domain_;
  std::vector<Segment> segments_;
  Status provider_failure_;
  int asked_ = 0;
  std::unique_ptr<SegmentTable> table_;
};

TEST_F(SegmentTableTest, AllTensorsOfASegmentShareItsKey) {
  SegmentTable& table = this->table(&keys_);
  const auto first = table.find(kBase + 5, 100);
  const auto second = table.find(kBase + 70000, 1000);
  ASSERT_NE(first.registration, nullptr);
  EXPECT_EQ(first.registration, second.registration);
  EXPECT_EQ(first.registration->kind(), RegistrationKind::kDmabuf) << "one piece needs no indirect key";
  EXPECT_NE(first.generation, 0u);
  EXPECT_EQ(fake_->registrations, 1);
  EXPECT_EQ(asked_, 1);
}

TEST_F(SegmentTableTest, AMissAsksTheProviderOnce) {
  SegmentTable& table = this->table(&keys_);
  EXPECT_EQ(table.find(kBase + 10 * kStep, 100).registration, nullptr);
  EXPECT_EQ(asked_, 1);
  EXPECT_NE(table.find(kBase, 100).registration, nullptr);
  EXPECT_EQ(asked_, 1) << "a hit does not";
  EXPECT_EQ(table.find(kBase + kStep - 1, 2).registration, nullptr) << "past the end of what the key covers";
  EXPECT_EQ(asked_, 2);
  EXPECT_EQ(table.report().syncs, 2u);
}

TEST_F(SegmentTableTest, C16_SegmentGrowthKeepsOldKeysUsable) {
  SegmentTable& table = this->table(&keys_);
  auto in_flight = table.find(kBase, kStep);
  const std::uint32_t old_key = in_flight.registration->rkey();
  grow_to(2);
  const auto grown = table.find(kBase + kStep - 50, 100);
  ASSERT_NE(grown.registration, nullptr);
  EXPECT_EQ(grown.registration->kind(), RegistrationKind::kIndirect);
  EXPECT_EQ(grown.registration->keys(kBase + 100, 1).iova, 100u) << "an indirect key counts from the segment's begin";
  EXPECT_EQ(grown.generation, in_flight.generation) << "it is the same memory";
  EXPECT_EQ(fake_->registrations, 2) << "only the new tail was registered";
  grow_to(3);
  const auto again = table.find(kBase, 3 * kStep);
  EXPECT_EQ(keys_.alive, 2);
  EXPECT_EQ(in_flight.registration->rkey(), old_key);
  EXPECT_EQ(fake_->memories, 3);
  in_flight = {};
  EXPECT_EQ(fake_->memories, 3) << "the new key is made of it, too";
}

TEST_F(SegmentTableTest, C16_AnOldKeyEndsWithItsLastUser) {
  SegmentTable& table = this->table(&keys_);
  grow_to(2);
  auto in_flight = table.find(kBase, 2 * kStep);
  grow_to(3);
  EXPECT_NE(table.find(kBase, 3 * kStep).registration, in_flight.registration);
  EXPECT_EQ(keys_.alive, 1) << "the segment was registered in one piece, then bound with its tail";
  in_flight = {};
  EXPECT_EQ(keys_.alive, 1);
  grow_to(4);
  (void)table.find(kBase, 4 * kStep);
  EXPECT_EQ(keys_.alive, 1) << "nobody used the old key any more";
}

TEST_F(SegmentTableTest, C16_OverTheLimitFallsBack) {
  FakeKeys two(2);
  SegmentTable& table = this->table(&two, {.piece_bytes_max = kStep});
  grow_to(2);
  const auto old = table.find(kBase, 2 * kStep);
  ASSERT_NE(old.registration, nullptr);
  grow_to(3);
  EXPECT_EQ(table.find(kBase, 3 * kStep).registration, nullptr) << "the caller takes a dmabuf";
  EXPECT_EQ(table.find(kBase, 2 * kStep).registration, old.registration) << "what was covered still is";
  EXPECT_NE(table.find(kBase + 2 * kStep, 100).registration, nullptr) << "so is what lies in one piece";
  const SegmentReport report = table.report();
  EXPECT_EQ(report.without_key, 1u);
  EXPECT_EQ(report.failure.code(), Code::kBusy);
  EXPECT_NE(report.failure.message().find("has 3 pieces, and a key of mock0 at most 2"), std::string_view::npos);
  table_.reset();
}

TEST_F(SegmentTableTest, C16_ManySmallStepsAreCompacted) {
  SegmentTable& table = this->table(&keys_);
  for (std::size_t steps = 1; steps <= 5; ++steps) {
    grow_to(steps);
    EXPECT_NE(table.find(kBase, steps * kStep).registration, nullptr) << steps;
  }
  EXPECT_EQ(table.report().pieces, 1u);
  EXPECT_EQ(fake_->memories, 1);
  EXPECT_EQ(keys_.alive, 0);
}

TEST_F(SegmentTableTest, C16_RemappedMemoryIsRegisteredAgain) {
  SegmentTable& table = this->table(&keys_);
  const auto old = table.find(kBase, 100);
  EXPECT_EQ(table.generation(kBase), old.generation);
  map(0, 1, 99);  // Another allocation at the same address.
  EXPECT_EQ(table.generation(kBase), 0u);
  const auto fresh = table.find(kBase, 100);
  ASSERT_NE(fresh.registration, nullptr);
  EXPECT_NE(fresh.registration, old.registration);
  EXPECT_NE(fresh.generation, old.generation);
  segments_.front().generation = 7;  // The allocator says so itself.
  table.sync();
  EXPECT_NE(table.find(kBase, 100).registration, fresh.registration);
  EXPECT_EQ(fake_->registrations, 3);
}

TEST_F(SegmentTableTest, AShrunkSegmentIsRegisteredAgainAndAVanishedOneLetGo) {
  SegmentTable& table = this->table(&keys_);
  grow_to(2);
  const auto large = table.find(kBase, 2 * kStep);
  segments_.front().range.end = kBase + kStep;
  table.sync();
  EXPECT_NE(table.find(kBase, kStep).registration, large.registration);
  EXPECT_NE(table.find(kBase, kStep).generation, large.generation);
  segments_.clear();
  table.sync();
  EXPECT_EQ(table.find(kBase, 100).registration, nullptr);
  EXPECT_EQ(table.report().segments, 0u);
  EXPECT_EQ(fake_->memories, 1) << "the large one is still held here";
}

TEST_F(SegmentTableTest, AFailingSegmentTroublesNoOtherAndIsTriedAgainLater) {
  segments_.push_back({{kBase + 10 * kStep, kBase + 11 * kStep}});  // Nothing is mapped there.
  segments_.push_back({{kBase + 20 * kStep, kBase + 21 * kStep}});
  map(20, 21, 50);
  SegmentTable& table = this->table(&keys_);
  EXPECT_NE(table.find(kBase + 20 * kStep, 100).registration, nullptr);
  EXPECT_EQ(table.report().failure.code(), Code::kInvalid);
  map(10, 11, 60);
  EXPECT_EQ(table.find(kBase + 10 * kStep, 100).registration, nullptr) << "not at once";
  clock_.at = clock_.at + std::chrono::seconds(2);
  EXPECT_NE(table.find(kBase + 10 * kStep, 100).registration, nullptr);
  EXPECT_TRUE(table.report().failure.ok());
}

TEST_F(SegmentTableTest, AProviderThatFailsTakesNothingAway) {
  SegmentTable& table = this->table(&keys_);
  const auto found = table.find(kBase, 100);
  provider_failure_ = Status(Code::kFailed, "no snapshot");
  table.sync();
  EXPECT_EQ(table.find(kBase, 100).registration, found.registration);
  EXPECT_EQ(table.report().failure.message(), "no snapshot");
}

TEST_F(SegmentTableTest, NonsenseOfAProviderIsIgnored) {
  segments_ = {{{kBase + 5 * kStep, kBase + kStep}}, {{0, 0}}, {{kBase, kBase + kStep}}, {{kBase + 10, kBase + kStep}}};
  SegmentTable& table = this->table(&keys_);
  EXPECT_NE(table.find(kBase + 20, 100).registration, nullptr);
  EXPECT_EQ(table.report().segments, 1u);
}

TEST_F(SegmentTableTest, WithoutIndirectKeysOnlyPiecesAreFound) {
  SegmentTable& table = this->table(nullptr, {.piece_bytes_max = kStep});
  grow_to(2);
  EXPECT_NE(table.find(kBase + kStep, kStep).registration, nullptr);
  EXPECT_EQ(table.find(kBase + kStep - 1, 2).registration, nullptr);
}

TEST_F(SegmentTableTest, ACacheTakesSegmentsFirstAndDmabufsOtherwise) {
  SegmentTable& table = this->table(&keys_);
  GpuMemory gpu(domain_, &gpu_, {.path = GpuPath::kDmabuf});
  SegmentedMemory memory(table, gpu);
  {
    MrCache cache(memory);
    const Wanted tensor{.address = kBase + 1000, .size = 100};
    const auto key = cache.acquire(tensor).value().front();
    EXPECT_TRUE(key->covers(kBase, kStep));
    EXPECT_EQ(cache.acquire({.address = kBase, .size = kStep}).value().front(), key);
    EXPECT_EQ(cache.counters().hits, 1u);
    grow_to(2);
    const auto grown = cache.acquire({.address = kBase + kStep - 1, .size = 2}).value().front();
    EXPECT_EQ(grown->kind(), RegistrationKind::kIndirect);
    EXPECT_EQ(cache.acquire(tensor).value().front(), grown) << "the same memory, under the larger key";
    EXPECT_EQ(cache.counters().stale, 0u);
    map(0, 1, 77);
    EXPECT_NE(cache.acquire(tensor).value().front(), grown);
    EXPECT_EQ(cache.counters().stale, 1u);

    map(100, 101, 200);  // In no segment.
    const Wanted outside{.address = kBase + 100 * kStep + 7, .size = 100};
    EXPECT_EQ(cache.acquire(outside).value().front()->kind(), RegistrationKind::kDmabuf);
    const int asked = asked_;
    EXPECT_TRUE(cache.acquire(outside).has_value());
    EXPECT_EQ(asked_, asked) << "a hit does not ask the provider";
    const Wanted read_only{.address = kBase, .size = 100, .access = {.rights = Rights::kRead}};
    EXPECT_EQ(cache.acquire(read_only).value().front()->rights(), Rights::kRead) << "not by the segment's key";
  }
}

TEST(SegmentTable, FailureOfEachCallLeaksNothing) {
  const int calls = fail_each_call<MemoryFake>([](const std::shared_ptr<MemoryFake>& fake) {
    GpuFake gpu;
    FakeKeys keys(4);
    gpu.allocations = {{kBase, {kStep, 1}}, {kBase + kStep, {kStep, 2}}};
    gpu.fails = keys.fails = [&fake] { return fake->fails(); };
    const Result<std::shared_ptr<Domain>> domain = Domain::open(fake, "mock0");
    if (!domain) return false;
    std::vector<Segment> segments = {{{kBase, kBase + kStep}}};
    SegmentTable table(*domain, gpu, [&] { return segments; }, &keys, Access{}, {.failure_ttl = Duration::zero()});
    const bool first = table.find(kBase, kStep).registration != nullptr;
    segments.front().range.end += kStep;
    const bool grown = table.find(kBase, 2 * kStep).registration != nullptr;
    const bool recovered = table.find(kBase, 2 * kStep).registration != nullptr;
    EXPECT_TRUE(recovered) << "one failure is not for good";
    return first && grown && recovered;
  });
  EXPECT_GT(calls, 10);
}

}  // namespace
}  // namespace hawser::backend::verbs
