#include "api/handles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace hawser::api {
namespace {

struct Apple final : Object {
  static constexpr std::uint8_t kKind = 1;
  static constexpr std::string_view kName = "apple";
  explicit Apple(int* its_deaths) : deaths(its_deaths) {}
  ~Apple() override { ++*deaths; }
  int* deaths;
};

struct Pear final : Object {
  static constexpr std::uint8_t kKind = 2;
  static constexpr std::string_view kName = "pear";
};

/// Notes what it is told to.
struct Plum final : Object {
  static constexpr std::uint8_t kKind = 3;
  static constexpr std::string_view kName = "plum";
  explicit Plum(Note** its_note) : note(its_note) {}
  void placed(Note& its_note) override { *note = &its_note; }
  Note** note;
};

struct HandlesTest : testing::Test {
  // As in the library: tables are never destroyed, because the handlers of forks know them.
  static Handles& table() {
    static Handles* const its = new Handles;
    return *its;
  }
  std::uint64_t apple() { return table().add("test", std::make_unique<Apple>(&deaths)).value(); }
  std::string why(std::uint64_t id) { return std::string(table().find<Apple>("eat", id).error().message()); }
  int deaths = 0;
};

TEST_F(HandlesTest, FindsWhatWasAdded) {
  const std::uint64_t id = apple();
  EXPECT_NE(id, 0u);
  EXPECT_EQ((*table().find<Apple>("test", id))->deaths, &deaths);
  EXPECT_TRUE(table().release<Apple>("test", id).ok());
  EXPECT_EQ(deaths, 1);
}

TEST_F(HandlesTest, SaysWhatIsWrong) {
  const std::uint64_t pear = table().add("test", std::make_unique<Pear>()).value();
  const std::uint64_t id = apple();
  EXPECT_EQ(why(0), "eat: the apple handle is null");
  EXPECT_NE(why(pear).find("is of another kind"), std::string::npos);
  EXPECT_NE(why(id + 1).find("never given out"), std::string::npos);
  EXPECT_NE(why(~0ull).find("is of another kind"), std::string::npos);
  // A pear that claims to be an apple.
  EXPECT_NE(why(pear ^ (3u << 24)).find("never given out"), std::string::npos);
  EXPECT_EQ(table().find<Apple>("eat", pear).error().code(), Code::kInvalid);
  EXPECT_FALSE(table().release<Apple>("test", pear ^ (3u << 24)).ok());
  EXPECT_TRUE(table().release<Pear>("test", pear).ok());
  EXPECT_TRUE(table().release<Apple>("test", id).ok());
  EXPECT_NE(why(id).find("was released"), std::string::npos);
  EXPECT_EQ(table().release<Apple>("test", id).code(), Code::kInvalid);
  EXPECT_EQ(deaths, 1);
}

TEST_F(HandlesTest, WhatIsInUseOutlivesItsHandle) {
  const std::uint64_t id = apple();
  {
    auto held = table().find<Apple>("test", id);
    ASSERT_TRUE(held);
    EXPECT_TRUE(table().release<Apple>("test", id).ok());
    EXPECT_FALSE(table().find<Apple>("test", id));
    EXPECT_FALSE(table().release<Apple>("test", id).ok());
    EXPECT_EQ(deaths, 0);
  }
  EXPECT_EQ(deaths, 1);
}

TEST_F(HandlesTest, APlaceIsUsedAgainByAnotherGeneration) {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t id = apple();
    EXPECT_TRUE(seen.insert(id).second);
    EXPECT_TRUE(table().release<Apple>("test", id).ok());
  }
  EXPECT_EQ(deaths, 100);
  for (const std::uint64_t id : seen) EXPECT_FALSE(table().find<Apple>("test", id));
}

TEST_F(HandlesTest, NotesAreReadWithoutPins) {
  Note* note = nullptr;
  const std::uint64_t owner = apple(), other = apple();
  const std::uint64_t plum = table().add("test", std::make_unique<Plum>(&note)).value();
  EXPECT_FALSE(table().has_noted<Plum>(plum, owner));
  EXPECT_FALSE(table().has_noted<Plum>(plum, 0)) << "nothing noted is no note of nobody";
  note->store(owner);
  EXPECT_TRUE(table().has_noted<Plum>(plum, owner));
  EXPECT_FALSE(table().has_noted<Plum>(plum, other));
  EXPECT_FALSE(table().has_noted<Apple>(plum, owner)) << "of another kind";
  EXPECT_FALSE(table().has_noted<Plum>(owner, owner));
  EXPECT_FALSE(table().has_noted<Plum>(~0ull, owner));
  EXPECT_FALSE(table().has_noted<Plum>(plum ^ (1ull << 32), owner)) << "of another generation";
  note->store(other);
  EXPECT_TRUE(table().release<Apple>("test", other).ok());
  EXPECT_FALSE(table().has_noted<Plum>(plum, other)) << "it is dead";
  note->store(owner);
  EXPECT_TRUE(table().release<Plum>("test", plum).ok());
  EXPECT_FALSE(table().has_noted<Plum>(plum, owner));
  EXPECT_TRUE(table().release<Apple>("test", owner).ok());
}

TEST_F(HandlesTest, ANoteDiesWithItsObject) {
  Note* note = nullptr;
  const std::uint64_t owner = apple();
  const std::uint64_t first = table().add("test", std::make_unique<Plum>(&note)).value();
  Note* const its = note;
  note->store(owner);
  EXPECT_TRUE(table().release<Plum>("test", first).ok());
  const std::uint64_t second = table().add("test", std::make_unique<Plum>(&note)).value();
  ASSERT_EQ(note, its) << "the place is used again";
  EXPECT_FALSE(table().has_noted<Plum>(second, owner));
  EXPECT_TRUE(table().release<Plum>("test", second).ok());
  EXPECT_TRUE(table().release<Apple>("test", owner).ok());
}

TEST_F(HandlesTest, GrowsByChunks) {
  std::vector<std::uint64_t> ids;
  constexpr std::size_t kCount = 3 * Handles::kChunk + 1;
  for (std::size_t i = 0; i < kCount; ++i) ids.push_back(apple());
  std::vector<std::uint64_t> sorted = ids;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(std::unique(sorted.begin(), sorted.end()), sorted.end());
  for (const std::uint64_t id : ids) EXPECT_TRUE(table().release<Apple>("test", id).ok());
  EXPECT_EQ(deaths, static_cast<int>(kCount));
}

}  // namespace
}  // namespace hawser::api
