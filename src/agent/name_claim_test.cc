#include "agent/name_claim.h"

#include <gtest/gtest.h>

namespace hawser::agent {
namespace {

constexpr Holder kSelf{.born = 50, .incarnation = {1, 1}};
constexpr Holder kEarlier{.born = 49, .incarnation = {9, 9}};
constexpr Holder kLater{.born = 51, .incarnation = {0, 2}};

NameClaim claim() {
  NameClaim claim;
  claim.set_self(kSelf);
  return claim;
}

TEST(NameClaim, ReadsBeforeItWrites) {
  NameClaim one = claim();
  EXPECT_TRUE(one.must_read());
  one.on_free();
  EXPECT_FALSE(one.must_read());
  EXPECT_TRUE(one.condition().create_only);
  one.on_written(7);
  EXPECT_TRUE(one.is_held());
  EXPECT_FALSE(one.condition().create_only);
  EXPECT_EQ(one.condition().if_version, 7u);
  one.on_unsure();
  EXPECT_TRUE(one.must_read());
}

TEST(NameClaim, TheLaterBornHasTheKey) {
  NameClaim one = claim();
  one.on_value(3, kEarlier);
  EXPECT_FALSE(one.is_displaced());
  EXPECT_EQ(one.condition().if_version, 3u);
  one.on_value(4, kLater);
  EXPECT_TRUE(one.is_displaced());
  EXPECT_EQ(one.holder(), kLater);
  one.on_free();
  EXPECT_FALSE(one.is_displaced());
  EXPECT_TRUE(one.condition().create_only);
}

TEST(NameClaim, OfTwoBornAtOnceTheHigherIncarnationHasIt) {
  NameClaim one = claim();
  one.on_value(3, Holder{.born = 50, .incarnation = {1, 2}});
  EXPECT_TRUE(one.is_displaced());
  one.on_value(4, Holder{.born = 50, .incarnation = {1, 0}});
  EXPECT_FALSE(one.is_displaced());
}

TEST(NameClaim, KnowsItsOwnCardAndReplacesWhatIsNone) {
  NameClaim one = claim();
  one.on_value(9, Holder{.born = 1, .incarnation = kSelf.incarnation});
  EXPECT_TRUE(one.is_held());
  EXPECT_EQ(one.condition().if_version, 9u);
  one.on_value(10, std::nullopt);
  EXPECT_FALSE(one.is_held() || one.is_displaced() || one.must_read());
  EXPECT_EQ(one.condition().if_version, 10u);
}

TEST(NameClaim, ASuccessorIsBornAfterWhomItFinds) {
  EXPECT_EQ(born_after(100, std::nullopt), 100u);
  EXPECT_EQ(born_after(100, kEarlier), 100u);
  EXPECT_EQ(born_after(40, kEarlier), 50u);
  EXPECT_EQ(born_after(49, kEarlier), 50u);
  EXPECT_EQ(born_after(1, Holder{.born = UINT64_MAX, .incarnation = {}}), UINT64_MAX);
}

}  // namespace
}  // namespace hawser::agent
