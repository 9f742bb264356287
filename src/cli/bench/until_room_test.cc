#include "cli/bench/until_room.h"

#include <gtest/gtest.h>

namespace hawser::cli::bench {
namespace {

constexpr Duration kPatience = std::chrono::seconds(20);

Result<int> refused(Code code) { return Status(code, "no room"); }

TEST(UntilRoom, BeginsOnceWhereThereIsRoom) {
  int turns = 0;
  const Result<int> begun = until_room(
      kPatience, [] { return Result<int>(7); }, [&] { ++turns; });
  ASSERT_TRUE(begun);
  EXPECT_EQ(*begun, 7);
  EXPECT_EQ(turns, 0);
}

TEST(UntilRoom, TurnsAfterEachRefusalAndTriesAgain) {
  int turns = 0;
  const Result<int> begun = until_room(
      kPatience, [&] { return turns < 3 ? refused(Code::kBusy) : Result<int>(7); }, [&] { ++turns; });
  ASSERT_TRUE(begun);
  EXPECT_EQ(turns, 3);
}

TEST(UntilRoom, AnotherErrorIsNoLackOfRoom) {
  int turns = 0;
  const Result<int> begun = until_room(
      kPatience, [] { return refused(Code::kDisconnected); }, [&] { ++turns; });
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code(), Code::kDisconnected);
  EXPECT_EQ(turns, 0);
}

TEST(UntilRoom, PatienceEnds) {
  int turns = 0;
  const Result<int> begun = until_room(
      std::chrono::milliseconds(5), [] { return refused(Code::kBusy); }, [&] { ++turns; });
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code(), Code::kBusy);
  EXPECT_GT(turns, 0);
}

}  // namespace
}  // namespace hawser::cli::bench
