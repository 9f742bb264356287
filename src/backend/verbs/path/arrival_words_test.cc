#include "backend/verbs/path/arrival_words.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace hawser::backend::verbs {
namespace {

using Told = std::vector<std::pair<std::uint64_t, std::uint32_t>>;

Told tell(ArrivalWords& arrivals) {
  Told all;
  arrivals.tell([&all](std::uint64_t transfer, std::uint32_t chunk) { all.emplace_back(transfer, chunk); });
  return all;
}

struct ArrivalWordsTest : ::testing::Test {
  void agree(std::uint32_t receives, std::uint32_t peers) {
    arrivals.agree(receives, peers);
    sender.begin(receives);
    counter.begin(receives);
  }
  Status say(std::uint64_t transfer, std::uint32_t chunk) {
    const proto::ImmediateWords words = sender.words_for(transfer, chunk);
    EXPECT_GT(words.count, 0);
    sender.sent(words, transfer);
    for (const std::uint32_t word : words.all()) {
      if (Status status = arrivals.read(counter, word); !status.ok()) return status;
    }
    return sender.on_counted(counter.counted());
  }

  ArrivalWords arrivals;
  proto::ImmediateSender sender;
  proto::ImmediateCounter counter;
};

TEST_F(ArrivalWordsTest, AreKeptUntilTheyMayBeTold) {
  agree(8, 8);
  EXPECT_TRUE(say(5, 0).ok());
  EXPECT_TRUE(say(5, 1).ok());
  EXPECT_TRUE(say(std::uint64_t{1} << 40, 2).ok()) << "a number in words of its own";
  EXPECT_EQ(arrivals.count(), 3u);
  EXPECT_EQ(tell(arrivals), (Told{{5, 0}, {5, 1}, {std::uint64_t{1} << 40, 2}}));
  EXPECT_TRUE(tell(arrivals).empty()) << "each once";
}

TEST_F(ArrivalWordsTest, WhereEitherEndHasNoReceivesNoneAreUsed) {
  agree(0, 8);
  EXPECT_EQ(arrivals.credits(), 0u);
  EXPECT_EQ(arrivals.read(counter, 0).code(), Code::kCorrupt);
  agree(8, 0);
  EXPECT_EQ(arrivals.credits(), 0u);
  EXPECT_EQ(arrivals.read(counter, 0).code(), Code::kCorrupt);
  agree(8, 4);
  EXPECT_EQ(arrivals.credits(), 4u);
}

TEST_F(ArrivalWordsTest, APeerThatSaysMoreThanThereAreReceivesIsRefused) {
  agree(1, 1);
  for (std::uint32_t i = 0; i < wire::kPairsMax; ++i) ASSERT_TRUE(say(1 + i, i % 4).ok()) << i;
  EXPECT_EQ(say(wire::kPairsMax + 1, 0).code(), Code::kCorrupt);
}

TEST_F(ArrivalWordsTest, WordsThatNoSenderSaysAreRefused) {
  agree(8, 8);
  EXPECT_EQ(arrivals.read(counter, 0xffffffff).code(), Code::kCorrupt);
}

}  // namespace
}  // namespace hawser::backend::verbs
