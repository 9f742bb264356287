#include "runtime/last_words.h"

#include <gtest/gtest.h>

#include "runtime/word.h"

namespace hawser::runtime {
namespace {

class LastWordsTest : public testing::Test {
 protected:
  bool counts(Priority priority, const wire::RuntimeMessage& word) {
    bool counts = false;
    EXPECT_TRUE(words_.hear(priority, word, &counts).ok());
    return counts;
  }
  static wire::RuntimeMessage left(std::uint64_t world) { return left_word(world).message; }

  LastWords words_;
};

TEST_F(LastWordsTest, OneCountsOnceEachClassHasBroughtIt) {
  EXPECT_FALSE(counts(Priority::kBulk, left(1)));
  EXPECT_FALSE(counts(Priority::kBulk, left(2))) << "a class may be ahead";
  EXPECT_FALSE(counts(Priority::kCritical, left(1)));
  EXPECT_TRUE(counts(Priority::kRealtime, left(1)));
  EXPECT_FALSE(counts(Priority::kRealtime, left(2)));
  EXPECT_TRUE(counts(Priority::kCritical, left(2)));
}

TEST_F(LastWordsTest, ClassesThatDifferAreThePeersError) {
  bool counted = false;
  EXPECT_FALSE(counts(Priority::kBulk, left(1)));
  EXPECT_EQ(words_.hear(Priority::kCritical, left(2), &counted).code(), Code::kCorrupt);
  EXPECT_FALSE(counted);
  const wire::RuntimeMessage checked = checked_word(1, 4, Code::kInvalid).message;
  EXPECT_EQ(words_.hear(Priority::kRealtime, checked, &counted).code(), Code::kCorrupt);
}

TEST_F(LastWordsTest, OneClassIsAheadUpToTheLimitAndNotBeyond) {
  bool counted = false;
  for (std::size_t i = 0; i < kLastWordsMax; ++i) ASSERT_FALSE(counts(Priority::kBulk, left(i)));
  EXPECT_EQ(words_.hear(Priority::kBulk, left(kLastWordsMax), &counted).code(), Code::kCorrupt);
}

TEST_F(LastWordsTest, AfterAnEndItBeginsAnew) {
  EXPECT_FALSE(counts(Priority::kBulk, left(1)));
  words_.clear();
  EXPECT_FALSE(counts(Priority::kCritical, left(5)));
  EXPECT_FALSE(counts(Priority::kRealtime, left(5)));
  EXPECT_TRUE(counts(Priority::kBulk, left(5)));
}

TEST(LastWords, AreThoseThatSayThatSomethingEnds) {
  EXPECT_TRUE(LastWords::has(wire::RuntimeKind::kLeft));
  EXPECT_TRUE(LastWords::has(wire::RuntimeKind::kChecked));
  EXPECT_FALSE(LastWords::has(wire::RuntimeKind::kRevoke));
}

}  // namespace
}  // namespace hawser::runtime
