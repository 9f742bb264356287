#include "base/id128.h"

#include <gtest/gtest.h>

#include <unordered_set>

namespace hawser::base {
namespace {

TEST(Id128, HexBothWays) {
  const Id128 id{0x0123456789abcdef, 0xfedcba9876543210};
  EXPECT_EQ(to_hex(id), "0123456789abcdeffedcba9876543210");
  EXPECT_EQ(id128_from_hex("0123456789ABCDEFfedcba9876543210"), id);
  EXPECT_EQ(to_hex(Id128{}), std::string(32, '0'));
  for (const char* bad : {"", "0123", "0123456789abcdeffedcba987654321", "0123456789abcdeffedcba98765432100",
                          "0123456789abcdeffedcba987654321g", " 123456789abcdeffedcba9876543210"}) {
    EXPECT_FALSE(id128_from_hex(bad).has_value()) << bad;
  }
}

TEST(Id128, Compares) {
  EXPECT_TRUE(Id128{}.is_zero());
  EXPECT_FALSE((Id128{0, 1}).is_zero());
  EXPECT_FALSE((Id128{1, 0}).is_zero());
  EXPECT_NE((Id128{1, 2}), (Id128{2, 1}));
  EXPECT_LT((Id128{1, 9}), (Id128{2, 0}));
  EXPECT_LT((Id128{1, 1}), (Id128{1, 2}));
}

TEST(Id128, RandomIdsDiffer) {
  std::unordered_set<Id128> seen;
  for (int i = 0; i < 1000; ++i) {
    const Id128 id = random_id128();
    EXPECT_FALSE(id.is_zero());
    EXPECT_TRUE(seen.insert(id).second);
  }
}

TEST(Id128, SequentialIdsSpreadOverBuckets) {
  std::unordered_set<std::size_t> low_bits;
  for (std::uint64_t i = 0; i < 256; ++i) low_bits.insert(std::hash<Id128>()(Id128{i, 0}) % 1024);
  EXPECT_GT(low_bits.size(), 180u);  // 226 expected of a random hash
}

}  // namespace
}  // namespace hawser::base
