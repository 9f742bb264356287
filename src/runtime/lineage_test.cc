#include "runtime/lineage.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace hawser::runtime {
namespace {

using Ranks = std::vector<std::uint32_t>;

TEST(Lineage, RanksThatMakeOtherGroupsBesideAgreeOnTheirs) {
  Lineage one, other;
  other.group(7, "w", Ranks{0, 2});  // With somebody else.
  EXPECT_EQ(one.group(7, "w", Ranks{0, 1}).nonce, other.group(7, "w", Ranks{0, 1}).nonce);
  EXPECT_EQ(one.group(7, "w", Ranks{0, 1}).nonce, other.group(7, "w", Ranks{0, 1}).nonce) << "the second of each";
}

TEST(Lineage, GroupsDiffer) {
  Lineage lineage;
  std::set<std::uint64_t> nonces;
  for (const Ranks& ranks : {Ranks{0, 1}, Ranks{1, 0}, Ranks{0}, Ranks{0, 1, 2}, Ranks{0, 1}}) {
    nonces.insert(lineage.group(7, "w", ranks).nonce);
  }
  nonces.insert(lineage.group(8, "w", Ranks{0, 1}).nonce);
  EXPECT_EQ(nonces.size(), 6U) << "by members, their order, how many there were, and the world";
  EXPECT_EQ(Lineage().group(7, "w", Ranks{0}).name, "w/1.1");
}

TEST(Lineage, AShrunkWorldHasItsEpochInTheName) {
  const Lineage::Child first = Lineage::shrunk(7, "w", 1, Ranks{0, 2});
  EXPECT_EQ(first.name, "w@1");
  const Lineage::Child second = Lineage::shrunk(first.nonce, first.name, 2, Ranks{0, 1});
  EXPECT_EQ(second.name, "w@2");
  EXPECT_EQ(Lineage::shrunk(7, "a@b", 1, Ranks{0}).name, "a@b@1") << "the user's name is kept";
  EXPECT_NE(first.nonce, Lineage::shrunk(7, "w", 1, Ranks{0, 1}).nonce);
}

}  // namespace
}  // namespace hawser::runtime
