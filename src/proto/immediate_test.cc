#include "proto/immediate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace hawser::proto {
namespace {

constexpr std::uint32_t kReceives = 8;

/// Both ends of one queue pair.
struct Ends {
  explicit Ends(std::uint32_t receives = kReceives) {
    sender.begin(receives);
    counter.begin(receives);
  }
  /// How many words it took; 0: it went without.
  std::uint32_t send(std::uint64_t transfer, std::uint32_t chunk) {
    const ImmediateWords words = sender.words_for(transfer, chunk);
    for (const std::uint32_t word : words.all()) {
      const auto read = counter.on_word(word);
      EXPECT_TRUE(read) << transfer;
      if (read && *read) seen.emplace_back((*read)->transfer, (*read)->chunk);
    }
    if (words.count > 0) sender.sent(words, transfer);
    return words.count;
  }
  Status tell() {
    counter.told();
    return sender.on_counted(counter.counted());
  }
  ImmediateSender sender;
  ImmediateCounter counter;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> seen;
};

TEST(Immediate, OneWordNamesAChunkNearTheLast) {
  Ends ends;
  EXPECT_EQ(ends.send(1, 0), 1u);
  EXPECT_EQ(ends.send(1, 15), 1u);
  EXPECT_EQ(ends.send(500, 3), 1u);
  EXPECT_EQ(ends.send(2, 1), 1u) << "what is sent again is older than the last";
  EXPECT_EQ(ends.seen, (decltype(ends.seen){{1, 0}, {1, 15}, {500, 3}, {2, 1}}));
}

TEST(Immediate, AFarNumberIsSaidWholeFirst) {
  Ends ends;
  const std::uint64_t far = 0x0123'4567'89ab'cdefU;
  EXPECT_EQ(ends.send(far, 2), 3u);
  EXPECT_EQ(ends.send(far + (1 << 23) - 1, 2), 1u);
  EXPECT_TRUE(ends.tell().ok());
  EXPECT_EQ(ends.send(far - 1, 2), 3u);
  EXPECT_EQ(ends.seen, (decltype(ends.seen){{far, 2}, {far + (1 << 23) - 1, 2}, {far - 1, 2}}));
}

TEST(Immediate, WhatDoesNotFitGoesWithout) {
  Ends ends;
  EXPECT_EQ(ends.send(1, kImmediateChunksMax), 0u);
  EXPECT_EQ(ends.send(0, 1), 0u);
  EXPECT_EQ(ends.send(kImmediateTransferEnd, 1), 0u);
  EXPECT_EQ(ends.send(kImmediateTransferEnd - 1, 1), 3u);
}

TEST(Immediate, NoMoreAreUnderWayThanThereAreReceives) {
  Ends ends;
  for (std::uint32_t i = 0; i < kReceives; ++i) EXPECT_EQ(ends.send(1, i), 1u);
  EXPECT_EQ(ends.send(2, 0), 0u);
  EXPECT_TRUE(ends.counter.is_word_due());
  EXPECT_TRUE(ends.tell().ok());
  EXPECT_FALSE(ends.counter.is_word_due() || ends.counter.is_news());
  for (std::uint32_t i = 0; i + 2 < kReceives; ++i) EXPECT_EQ(ends.send(1, i), 1u);
  EXPECT_EQ(ends.send(1u << 30, 0), 0u) << "a far one takes three";
}

TEST(Immediate, WithTheFewestReceivesAWordComesBeforeItIsNeeded) {
  for (std::uint32_t receives = 3; receives < 12; ++receives) {
    Ends ends(receives);
    std::uint64_t transfer = 1;
    for (int i = 0; i < 100; ++i) {
      transfer += std::uint64_t{1} << 40;
      ASSERT_EQ(ends.send(transfer, 0), 3u) << receives;
      if (ends.counter.is_word_due()) {
        ASSERT_TRUE(ends.tell().ok());
      }
    }
  }
}

TEST(Immediate, ANewLifeBeginsAnew) {
  Ends ends;
  EXPECT_EQ(ends.send(1u << 30, 0), 3u);
  ends.sender.begin(kReceives);
  ends.counter.begin(kReceives);
  EXPECT_EQ(ends.counter.counted(), 0u);
  EXPECT_EQ(ends.send((1u << 30) + 1, 0), 3u);
  EXPECT_EQ(ends.seen.back().first, (1u << 30) + 1);
}

TEST(Immediate, WhatNoSenderSaysIsCorrupt) {
  const std::vector<std::vector<std::uint32_t>> bad = {
      {3u << 30},               // an unknown kind
      {2u << 30},               // a low half alone
      {1u << 30, 1u << 30},     // two high halves
      {1u << 30, 1u << 6},      // a chunk between the halves
      {0},                      // transfer 0
      {((1u << 24) - 1) << 6},  // below 0
      {1u << 6 | 16},           // more chunks than there are
  };
  for (const auto& words : bad) {
    ImmediateCounter counter;
    counter.begin(kReceives);
    bool corrupt = false;
    for (const std::uint32_t word : words) {
      const auto read = counter.on_word(word);
      corrupt = !read && read.error().code() == Code::kCorrupt;
    }
    EXPECT_TRUE(corrupt) << words.front();
  }
  ImmediateSender sender;
  sender.begin(kReceives);
  EXPECT_EQ(sender.on_counted(1).code(), Code::kCorrupt);
}

// Words under way, counts that come back late, numbers near and far: whatever was sent is read, and room comes back.
TEST(Immediate, AnyNumbersInOrderAreReadAsTheyWereMeant) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    base::Rng rng(seed);
    const auto receives = static_cast<std::uint32_t>(3 + rng.below(60));
    Ends ends(receives);
    std::deque<std::uint32_t> under_way;
    decltype(ends.seen) sent;
    std::uint64_t transfer = 1, without = 0;
    for (int i = 0; i < 2000; ++i) {
      if (rng.below(20) == 0) transfer = 1 + rng.u64() % (kImmediateTransferEnd - 1);
      transfer = std::clamp<std::uint64_t>(transfer + rng.below(40) - 10, 1, kImmediateTransferEnd - 1);
      const auto chunk = static_cast<std::uint32_t>(rng.below(kImmediateChunksMax));
      const ImmediateWords words = ends.sender.words_for(transfer, chunk);
      without += words.count == 0;
      if (words.count > 0) {
        ends.sender.sent(words, transfer);
        sent.emplace_back(transfer, chunk);
        under_way.insert(under_way.end(), words.all().begin(), words.all().end());
      }
      ASSERT_LE(under_way.size(), receives);
      for (std::uint64_t n = rng.below(4); n > 0 && !under_way.empty(); --n) {
        const auto read = ends.counter.on_word(under_way.front());
        under_way.pop_front();
        ASSERT_TRUE(read);
        if (*read) ends.seen.emplace_back((*read)->transfer, (*read)->chunk);
      }
      if (ends.counter.is_word_due()) {
        ASSERT_TRUE(ends.tell().ok());
      }
    }
    ASSERT_EQ(ends.seen.size() <= sent.size(), true);
    EXPECT_TRUE(std::equal(ends.seen.begin(), ends.seen.end(), sent.begin()));
    EXPECT_LT(without, 1900u);
  }
}

}  // namespace
}  // namespace hawser::proto
