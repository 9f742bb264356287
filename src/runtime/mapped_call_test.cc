#include "runtime/mapped_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace hawser::runtime {
namespace {

using schedule::Buffer;
using schedule::Call;
using What = schedule::Operation;

constexpr std::uint64_t kCount = 100;
constexpr std::uint64_t kBytes = kCount * 4;

/// One rank's memory, which is one region, and what it knows of the others'.
struct Rank {
  std::vector<std::byte> memory = std::vector<std::byte>(4096);
  std::uint32_t generation = 1;
  bool is_registered = true;
  MappedMemory known;
  std::vector<RankRegion> asked;
};

/// Ranks in memory: what one of them sees of another is that rank's memory itself.
class MappedCallTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kRanks = 3;

  class Look final : public backend::View {
   public:
    Look(MappedCallTest& test, std::span<const std::byte> bytes) : test_(test), bytes_(bytes) { ++test_.held_; }
    ~Look() override { let_go(); }
    void let_go() override {
      if (std::exchange(holds_, false)) --test_.held_;
    }
    std::span<const std::byte> bytes() const override {
      return test_.has_ended_ ? std::span<const std::byte>() : bytes_;
    }
    std::uint64_t first() const override { return test_.first_; }

   private:
    bool holds_ = true;
    MappedCallTest& test_;
    const std::span<const std::byte> bytes_;
  };

  agent::RegionId id(std::uint32_t rank) const {
    return {.index = rank, .generation = ranks_[rank].generation, .key = {7, rank}};
  }
  MappedCall::Uses uses(std::uint32_t rank) {
    Rank& its = ranks_[rank];
    const auto place = [this, &its,
                        rank](std::span<const std::byte> bytes) -> std::optional<agent::inner::MappedPlace> {
      if (!its.is_registered) return std::nullopt;
      return agent::inner::MappedPlace{.region = id(rank),
                                       .region_size = its.memory.size(),
                                       .offset = static_cast<std::uint64_t>(bytes.data() - its.memory.data())};
    };
    const auto view = [this, &its](const RankRegion& region) -> Result<std::unique_ptr<backend::View>> {
      if (std::ranges::find(its.asked, region) == its.asked.end()) {
        its.asked.push_back(region);
        return Status(Code::kBusy, "it is being asked for");
      }
      const auto all = std::span<const std::byte>(ranks_[region.rank].memory);
      return std::unique_ptr<backend::View>(std::make_unique<Look>(*this, all.subspan(first_)));
    };
    return {.memory = its.known, .place = place, .view = view};
  }
  Call call(std::uint32_t rank, What operation) const {
    Call made{.operation = operation, .rank = rank, .size = kRanks, .count = kCount, .element_bytes = 4};
    if (operation == What::kAllGather || operation == What::kReduceScatter) made.counts.assign(kRanks, kCount / 4);
    made.hosts = hosts_;
    made.root = root_;
    return made;
  }
  /// The ranks' calls, with all letters in all places. `offsets`: of input and output.
  void begin(What operation, std::uint64_t in = 0, std::uint64_t out = kBytes) {
    calls_.clear();
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      const std::byte* const data = ranks_[rank].memory.data();
      calls_.push_back(std::make_unique<MappedCall>(uses(rank), call(rank, operation), data + in, data + out));
      calls_.back()->write_letter();
    }
    for (std::uint32_t to = 0; to < kRanks; ++to) {
      std::uint32_t place = 0;
      for (std::uint32_t from = 0; from < kRanks; ++from) {
        if (!hosts_.empty() && hosts_[from] != hosts_[to]) continue;
        std::ranges::copy(calls_[from]->own_letter(), letter(*calls_[to], place++).begin());
      }
    }
  }
  static std::span<std::byte> letter(MappedCall& call, std::uint32_t from) {
    return call.letters().subspan(from * wire::kBufferLetterSize, wire::kBufferLetterSize);
  }
  /// What all of them decide; nothing where they differ.
  std::optional<bool> decided() {
    std::optional<bool> all;
    for (const auto& each : calls_) {
      const Result<bool> its = each->decide();
      EXPECT_TRUE(its.has_value()) << its.error().to_string();
      if (!its || (all && *all != *its)) return std::nullopt;
      all = *its;
    }
    return all;
  }

  std::array<Rank, kRanks> ranks_;
  std::vector<std::unique_ptr<MappedCall>> calls_;
  std::vector<std::uint32_t> hosts_;
  std::uint32_t root_ = 0;
  int held_ = 0;
  bool has_ended_ = false;
  std::uint64_t first_ = 0;  ///< Where the mapped part of each region begins.
};

TEST_F(MappedCallTest, TheSecondCallWithTheSameMemoryIsMapped) {
  begin(What::kAllReduce);
  EXPECT_EQ(decided(), false);
  EXPECT_EQ(held_, 0) << "who goes by messages holds nobody's memory";
  begin(What::kAllReduce, 8, kBytes + 16);
  EXPECT_EQ(decided(), true);
  EXPECT_EQ(calls_[0]->there(2, Buffer::kInput), ranks_[2].memory.data() + 8);
  EXPECT_EQ(calls_[0]->there(2, Buffer::kOutput), ranks_[2].memory.data() + kBytes + 16);
  EXPECT_EQ(held_, 6) << "one region of each other rank";
  calls_.clear();
  EXPECT_EQ(held_, 0);
}

TEST_F(MappedCallTest, EachOperationLendsWhatItsScheduleReads) {
  for (const What operation : {What::kAllReduce, What::kReduceScatter, What::kAllGather, What::kBroadcast}) {
    begin(operation);
    (void)decided();
    begin(operation);
    ASSERT_EQ(decided(), true) << to_string(operation);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      const schedule::Schedule schedule = calls_[rank]->schedule({}, schedule::Meetings::kByMessages);
      for (std::size_t i = 0; i < schedule.rounds(); ++i) {
        for (const schedule::Step& step : schedule.round(i)) {
          const bool reads = step.there.count > 0;
          EXPECT_TRUE(!reads || calls_[rank]->there(step.peer, step.there.buffer) != nullptr);
        }
      }
    }
  }
}

TEST_F(MappedCallTest, OneRankWhoseMemoryIsNotMappedMakesAllSendMessages) {
  ranks_[1].is_registered = false;
  for (int i = 0; i < 3; ++i) {
    begin(What::kAllReduce);
    EXPECT_EQ(decided(), false);
  }
}

TEST_F(MappedCallTest, OneRankThatHasNotMappedAllMakesAllSendMessages) {
  begin(What::kAllReduce);
  EXPECT_EQ(decided(), false);
  ranks_[2].asked.pop_back();
  begin(What::kAllReduce);
  EXPECT_EQ(decided(), false);
  begin(What::kAllReduce);
  EXPECT_EQ(decided(), true);
}

TEST_F(MappedCallTest, ANewRegionIsMappedFirst) {
  begin(What::kAllReduce);
  (void)decided();
  ranks_[0].generation = 2;
  begin(What::kAllReduce);
  EXPECT_EQ(decided(), false) << "the others know the region before";
  begin(What::kAllReduce);
  EXPECT_EQ(decided(), true);
}

TEST_F(MappedCallTest, OfABroadcastTheRootsMemoryCountsAlone) {
  ranks_[1].is_registered = ranks_[2].is_registered = false;
  begin(What::kBroadcast);
  (void)decided();
  begin(What::kBroadcast);
  EXPECT_EQ(decided(), true);
}

TEST_F(MappedCallTest, WhatWouldBeWrittenOverWhileItIsReadIsNotLent) {
  for (const auto& [in, out, is_safe] :
       {std::tuple(0UL, 4UL, false), std::tuple(0UL, 0UL, true), std::tuple(4UL, 0UL, false),
        std::tuple(0UL, kBytes - 4, false), std::tuple(0UL, kBytes, true)}) {
    begin(What::kAllReduce, in, out);
    (void)decided();
    begin(What::kAllReduce, in, out);
    EXPECT_EQ(decided(), is_safe) << in << " " << out;
  }
  begin(What::kReduceScatter, 0, 0);
  (void)decided();
  begin(What::kReduceScatter, 0, 0);
  EXPECT_EQ(decided(), false) << "the result would go over blocks that others read";
}

TEST_F(MappedCallTest, RanksOfOtherHostsAreNotReadAndTheirMemoryDoesNotMatter) {
  hosts_ = {0, 1, 0};
  ranks_[1].is_registered = false;
  for (const What operation : {What::kAllReduce, What::kBroadcast, What::kAllGather}) {
    begin(operation);
    for (const std::uint32_t rank : {0U, 2U}) {
      EXPECT_EQ(calls_[rank]->letters().size(), 2 * wire::kBufferLetterSize);
      EXPECT_EQ(calls_[rank]->decide().value(), false);
    }
    begin(operation);
    for (const std::uint32_t rank : {0U, 2U}) EXPECT_EQ(calls_[rank]->decide().value(), true) << to_string(operation);
    EXPECT_EQ(calls_[1]->decide().value(), false);
    EXPECT_EQ(calls_[2]->there(0, Buffer::kOutput), ranks_[0].memory.data() + kBytes);
    EXPECT_EQ(calls_[2]->there_at(0, Buffer::kOutput), calls_[2]->there(0, Buffer::kOutput));
  }
}

TEST_F(MappedCallTest, OfABroadcastFromAnotherHostTheLeadersMemoryCounts) {
  hosts_ = {0, 1, 0};
  root_ = 1;
  ranks_[1].is_registered = ranks_[2].is_registered = false;
  for (const bool expected : {false, true}) {
    begin(What::kBroadcast);
    for (const std::uint32_t rank : {0U, 2U}) EXPECT_EQ(calls_[rank]->decide().value(), expected);
  }
  root_ = 2;
  for (int i = 0; i < 2; ++i) {
    begin(What::kBroadcast);
    for (const std::uint32_t rank : {0U, 2U}) EXPECT_EQ(calls_[rank]->decide().value(), false) << "the root leads";
  }
}

TEST_F(MappedCallTest, AViewThatHasEndedShowsNothing) {
  begin(What::kAllReduce);
  (void)decided();
  begin(What::kAllReduce);
  ASSERT_EQ(decided(), true);
  has_ended_ = true;
  EXPECT_EQ(calls_[0]->there(1, Buffer::kInput), nullptr);
}

TEST_F(MappedCallTest, ALetterThatLiesIsCorrupt) {
  begin(What::kAllReduce);
  (void)decided();
  begin(What::kAllReduce);
  auto lie = wire::decode_buffer_letter(letter(*calls_[0], 1)).value();
  lie.output->offset = lie.output->region_size - kBytes + 1;  // It ends one byte behind the region.
  wire::encode(lie, letter(*calls_[0], 1).first<wire::kBufferLetterSize>());
  EXPECT_EQ(calls_[0]->decide().error().code(), Code::kCorrupt);
  lie.output->offset -= 1;
  wire::encode(lie, letter(*calls_[1], 1).first<wire::kBufferLetterSize>());
  EXPECT_TRUE(calls_[1]->decide().has_value());
  lie.output.reset();
  wire::encode(lie, letter(*calls_[2], 1).first<wire::kBufferLetterSize>());
  EXPECT_EQ(calls_[2]->decide().error().code(), Code::kCorrupt);
}

TEST_F(MappedCallTest, ABufferInTheEndsThatAreNotMappedIsCorrupt) {
  first_ = 64;
  begin(What::kAllReduce, 64, 2048);
  (void)decided();
  begin(What::kAllReduce, 64, 2048);
  EXPECT_EQ(decided(), true);
  EXPECT_EQ(calls_[0]->there(1, Buffer::kInput), ranks_[1].memory.data() + 64);
  begin(What::kAllReduce, 63, 2048);
  EXPECT_EQ(calls_[0]->decide().error().code(), Code::kCorrupt);
}

TEST(MappedMemory, IsBounded) {
  MappedMemory memory;
  for (std::uint64_t i = 0; i < MappedMemory::kKnownMax; ++i) memory.learn(i, {.number = i + 1});
  ASSERT_NE(memory.find(0), nullptr);
  memory.learn(0, {.number = 9});
  EXPECT_EQ(memory.find(0)->number, 9U);
  ASSERT_NE(memory.find(MappedMemory::kKnownMax - 1), nullptr);
  memory.learn(MappedMemory::kKnownMax, {.number = 1});
  EXPECT_EQ(memory.find(0), nullptr);
  EXPECT_NE(memory.find(MappedMemory::kKnownMax), nullptr);
}

}  // namespace
}  // namespace hawser::runtime
