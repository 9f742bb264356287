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
  Status set(const std::string& key, const std::string& value) {
    called_.clear();
    return table_.set(key, value, &called_);
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
  for (std::size_t i = 0; i < kSeedKeysMax; ++i) ASSERT_TRUE(set(std::to_string(i), "v").ok());
  EXPECT_EQ(set("one more", "v").code(), Code::kBusy);
  EXPECT_TRUE(set("0", "w").ok()) << "it is there already";
  SeedTable large;
  std::vector<SeedWaiter> none;
  const std::string value(1 << 20, 'v');
  for (int i = 0; i < 63; ++i) ASSERT_TRUE(large.set(std::string(1, static_cast<char>('0' + i)), value, &none).ok());
  const std::string rest((std::size_t{1} << 20) - 63 - 1, 'v');
  EXPECT_EQ(large.set("z", rest + "v", &none).code(), Code::kBusy);
  EXPECT_TRUE(large.set("z", rest, &none).ok());
  EXPECT_TRUE(large.set("z", "v", &none).ok()) << "a shorter one in its place";
}

}  // namespace
}  // namespace hawser::runtime
