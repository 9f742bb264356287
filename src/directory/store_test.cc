#include "directory/store.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace hawser::directory {
namespace {

std::vector<std::string> keys(const std::vector<DirectoryEntry>& entries) {
  std::vector<std::string> result;
  for (const DirectoryEntry& entry : entries) result.push_back(entry.key);
  return result;
}
using Keys = std::vector<std::string>;

TEST(Store, ListsByPrefixInOrder) {
  Store store;
  for (const char* key : {"b", "a/2", "a", "a/1", "a0"}) ASSERT_TRUE(store.put(key, "v", 1, Instant::max()));
  EXPECT_EQ(keys(store.list("a/")), (Keys{"a/1", "a/2"}));
  EXPECT_EQ(keys(store.list("")), (Keys{"a", "a/1", "a/2", "a0", "b"}));
  EXPECT_EQ(store.list("c").size(), 0u);
}

TEST(Store, ChangesTellTheLatestStateOfEachKey) {
  Store store;
  store.put("a", "1", 1, Instant::max());
  store.put("b", "1", 2, Instant::max());
  const std::uint64_t since = store.revision();
  store.put("a", "2", 3, Instant::max());
  store.put("c", "1", 4, Instant::max());
  store.put("a", "3", 5, Instant::max());
  store.erase("b");
  store.erase("c");
  store.put("c", "2", 6, Instant::max());
  const Store::Changes changes = store.changes("", since, 100);
  EXPECT_FALSE(changes.lost);
  EXPECT_EQ(keys(changes.changed), (Keys{"a", "c"}));
  EXPECT_EQ(changes.changed[0].value, "3");
  EXPECT_EQ(changes.changed[1].version, 6u);
  EXPECT_EQ(keys(changes.erased), (Keys{"b"}));
  EXPECT_EQ(changes.through, store.revision());
  EXPECT_TRUE(store.changes("", changes.through, 100).changed.empty());
}

TEST(Store, ChangesComeInPages) {
  Store store;
  for (int i = 0; i < 10; ++i) store.put("k" + std::to_string(i), "", 1, Instant::max());
  store.put("x", "", 1, Instant::max());
  Keys seen;
  std::uint64_t since = 0;
  for (int page = 0; page < 4; ++page) {
    const Store::Changes changes = store.changes("k", since, 3);
    for (const DirectoryEntry& entry : changes.changed) seen.push_back(entry.key);
    since = changes.through;
  }
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_EQ(since, store.revision());
}

TEST(Store, LeasesExpireInOrder) {
  Store store;
  store.put("a", "", 1, Instant::from_ns(20));
  store.put("b", "", 2, Instant::from_ns(10));
  store.put("c", "", 3, Instant::max());
  EXPECT_FALSE(store.expire(Instant::from_ns(9)));
  EXPECT_TRUE(store.expire(Instant::from_ns(10)));
  EXPECT_EQ(keys(store.list("")), (Keys{"a", "c"}));
  store.put("a", "", 4, Instant::from_ns(50));  // Renewed: the old expiry is forgotten.
  EXPECT_FALSE(store.expire(Instant::from_ns(49)));
  EXPECT_TRUE(store.expire(Instant::from_ns(50)));
  EXPECT_EQ(keys(store.list("")), (Keys{"c"}));
}

TEST(Store, MemoryStaysFlatOverJoinsAndLeaves) {
  Store store;
  store.put("first", "", 1, Instant::max());
  for (std::size_t i = 0; i < 3 * kTombstonesMax; ++i) {
    store.put(std::to_string(i), "", 1, Instant::max());
    store.erase(std::to_string(i));
  }
  EXPECT_EQ(store.size(), 1u);
  EXPECT_TRUE(store.changes("", 1, 10).lost);
  EXPECT_FALSE(store.changes("", store.revision() - 100, 10).lost);
}

TEST(Store, AFollowerEndsWithTheSamePicture) {
  base::Rng rng(5);
  Store store;
  std::map<std::string, std::string> follower;
  std::uint64_t told = 0;
  for (int step = 0; step < 20000; ++step) {
    const std::string key = std::to_string(rng.below(50));
    if (rng.chance(0.3)) {
      store.erase(key);
    } else {
      store.put(key, std::to_string(step), 1, Instant::from_ns(static_cast<std::int64_t>(step + rng.below(100))));
    }
    if (rng.chance(0.01)) store.expire(Instant::from_ns(step));
    if (!rng.chance(0.1)) continue;
    const Store::Changes changes = store.changes("", told, 7);
    ASSERT_FALSE(changes.lost);
    for (const DirectoryEntry& entry : changes.changed) follower[entry.key] = entry.value;
    for (const DirectoryEntry& entry : changes.erased) follower.erase(entry.key);
    told = changes.through;
  }
  while (told != store.revision()) {
    const Store::Changes changes = store.changes("", told, 7);
    for (const DirectoryEntry& entry : changes.changed) follower[entry.key] = entry.value;
    for (const DirectoryEntry& entry : changes.erased) follower.erase(entry.key);
    told = changes.through;
  }
  std::map<std::string, std::string> truth;
  for (const DirectoryEntry& entry : store.list("")) truth[entry.key] = entry.value;
  EXPECT_EQ(follower, truth);
}

TEST(CheckPut, ConditionsNameVersions) {
  EXPECT_TRUE(check_put("k", {}, 7).ok());
  EXPECT_TRUE(check_put("k", {.create_only = true}, 0).ok());
  EXPECT_TRUE(check_put("k", {.if_version = 7}, 7).ok());
  EXPECT_EQ(check_put("k", {.create_only = true}, 7).message(), "directory: key \"k\" is there already, in version 7");
  EXPECT_EQ(check_put("k", {.if_version = 6}, 7).message(), "directory: key \"k\" has version 7, not 6");
  EXPECT_EQ(check_put("k", {.if_version = 6}, 0).code(), Code::kBusy);
}

}  // namespace
}  // namespace hawser::directory
