#include "runtime/seed_table.h"

#include <gtest/gtest.h>

namespace hawser::runtime {
namespace {

Incarnation peer(int number) {
  Incarnation made;
  made.bytes[0] = static_cast<std::byte>(number);
  made.bytes[1] = static_cast<std::byte>(number >> 8);
  return made;
}

class SeedTableTest : public testing::Test {
 protected:
  Status set(const std::string& key, const std::string& value) { return set_by(0, key, value); }
  Status set_by(int number, const std::string& key, const std::string& value = "v") {
    called_.clear();
    return table_.set(key, value, {peer(number), "agent-" + std::to_string(number)}, &called_);
  }
  SeedTable table_;
  std::vector<SeedWaiter> called_;
};

TEST_F(SeedTableTest, AValueIsThereFromWhenItWasSet) {
  ASSERT_TRUE(set("a", "1").ok());
  EXPECT_EQ(table_.get("a", {peer(1), 1}).value(), "1");
  ASSERT_TRUE(set("a", "2").ok()) << "a rank that begins anew";
  EXPECT_EQ(table_.get("a", {peer(1), 2}).value(), "2");
  EXPECT_EQ(table_.waiting(), 0u);
}

TEST_F(SeedTableTest, WhoAskedBeforeIsCalledOnce) {
  EXPECT_FALSE(table_.get("a", {peer(1), 10}).value().has_value());
  EXPECT_FALSE(table_.get("a", {peer(2), 20}).value().has_value());
  EXPECT_FALSE(table_.get("b", {peer(2), 21}).value().has_value());
  ASSERT_TRUE(set("a", "x").ok());
  ASSERT_EQ(called_.size(), 2u);
  EXPECT_EQ(called_[0].id, 10u);
  EXPECT_EQ(called_[1].id, 20u);
  ASSERT_TRUE(set("a", "y").ok());
  EXPECT_TRUE(called_.empty());
  EXPECT_EQ(table_.waiting(), 1u);
}

TEST_F(SeedTableTest, APeerThatIsGoneWaitsForNothing) {
  (void)table_.get("a", {peer(1), 1}).has_value();
  (void)table_.get("a", {peer(2), 2}).has_value();
  (void)table_.get("b", {peer(1), 3}).has_value();
  table_.forget(peer(1));
  table_.forget(peer(3));
  EXPECT_EQ(table_.waiting(), 1u);
  ASSERT_TRUE(set("a", "x").ok());
  ASSERT_EQ(called_.size(), 1u);
  EXPECT_EQ(called_[0].id, 2u);
}

TEST_F(SeedTableTest, AnEntryBelongsToItsWriterUntilThatIsGone) {
  ASSERT_TRUE(set_by(1, "hawser/w/0", "a card").ok());
  const Status refused = set_by(2, "hawser/w/0", "another");
  EXPECT_EQ(refused.code(), Code::kDenied);
  EXPECT_EQ(refused.message(), "rank 0 of world 'w' is 'agent-1' here; 'agent-2' cannot be it, too");
  EXPECT_EQ(table_.get("hawser/w/0", {peer(3), 1}).value(), "a card");
  EXPECT_TRUE(set_by(1, "hawser/w/0", "a newer one").ok());
  table_.forget(peer(2));
  EXPECT_EQ(set_by(3, "hawser/w/0").code(), Code::kDenied) << "another one went";
  table_.forget(peer(1));
  EXPECT_EQ(table_.get("hawser/w/0", {peer(3), 2}).value(), "a newer one") << "it stays";
  EXPECT_TRUE(set_by(2, "hawser/w/0").ok());
  EXPECT_EQ(set_by(1, "hawser/w/0").code(), Code::kDenied) << "it is the other's now";
}

TEST_F(SeedTableTest, AWriterHasOneEntryInAFolder) {
  ASSERT_TRUE(set_by(1, "hawser/w/0").ok());
  const Status refused = set_by(1, "hawser/w/1");
  EXPECT_EQ(refused.code(), Code::kDenied);
  EXPECT_EQ(refused.message(), "'agent-1' is rank 0 of world 'w', and cannot write the entry of rank 1 of world 'w'");
  EXPECT_FALSE(table_.get("hawser/w/1", {peer(3), 1}).value().has_value());
  EXPECT_TRUE(set_by(1, "hawser/another/1").ok());
  EXPECT_TRUE(set_by(1, "hawser/w/more/1").ok()) << "a world may have a slash in its name";
  EXPECT_TRUE(set_by(1, "loose").ok());
  EXPECT_TRUE(set_by(1, "other").ok()) << "of no folder";
  table_.forget(peer(1));
  EXPECT_TRUE(set_by(2, "hawser/w/1").ok());
}

TEST_F(SeedTableTest, WhatStrangersWriteIsShownAsText) {
  ASSERT_TRUE(table_.set("hawser/w/0", "v", {peer(1), "a\x1b[2J"}, &called_).ok());
  EXPECT_EQ(set_by(2, "hawser/w/0").message().find('\x1b'), std::string::npos);
}

TEST_F(SeedTableTest, WaitersAreBounded) {
  for (std::size_t i = 0; i < kSeedWaitersOfPeerMax; ++i) ASSERT_TRUE(table_.get("a", {peer(1), i}));
  EXPECT_EQ(table_.get("a", {peer(1), 99}).error().code(), Code::kBusy);
  EXPECT_TRUE(table_.get("a", {peer(2), 1})) << "of another peer";
  int next = 2;
  while (table_.waiting() < kSeedWaitersMax) {
    ++next;
    for (std::size_t i = 0; i < kSeedWaitersOfPeerMax && table_.waiting() < kSeedWaitersMax; ++i) {
      ASSERT_TRUE(table_.get("b", {peer(next), i}));
    }
  }
  EXPECT_EQ(table_.get("c", {peer(next + 1), 1}).error().code(), Code::kBusy);
}

TEST_F(SeedTableTest, KeysAndBytesAreBounded) {
  for (std::size_t i = 0; i < kSeedKeysMax; ++i) ASSERT_TRUE(set_by(static_cast<int>(i), std::to_string(i)).ok());
  EXPECT_EQ(set_by(kSeedKeysMax, "one more").code(), Code::kBusy);
  EXPECT_TRUE(set("0", "w").ok()) << "it is there already";
  SeedTable large;
  std::vector<SeedWaiter> none;
  const auto set_large = [&](int number, const std::string& key, const std::string& value) {
    return large.set(key, value, {peer(number), "agent"}, &none);
  };
  const std::string value(1 << 20, 'v');
  for (int i = 0; i < 63; ++i) ASSERT_TRUE(set_large(i, std::string(1, static_cast<char>('0' + i)), value).ok());
  const std::string rest((std::size_t{1} << 20) - 63 - 1, 'v');
  EXPECT_EQ(set_large(63, "z", rest + "v").code(), Code::kBusy);
  EXPECT_TRUE(set_large(63, "z", rest).ok());
  EXPECT_TRUE(set_large(63, "z", "v").ok()) << "a shorter one in its place";
}

}  // namespace
}  // namespace hawser::runtime
