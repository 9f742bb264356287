#include "backend/verbs/path/strike_book.h"

#include <gtest/gtest.h>

namespace hawser::backend::verbs {
namespace {

Flight struck(std::uint64_t cookie, Scope scope) {
  Flight made;
  made.chunk.cookie = cookie;
  made.struck = true;
  made.failure = Status(Code::kDisconnected, "the device says so").with_scope(scope);
  return made;
}

TEST(StrikeBook, APathIsAtFaultWhereEachQueuePairBreaksAtTheSameChunk) {
  StrikeBook book;
  for (std::uint32_t i = 1; i < StrikeBook::kStrikesMax; ++i) {
    Flight flight = struck(7, Scope::kPath);
    EXPECT_TRUE(book.strike(flight).ok()) << i;
    EXPECT_FALSE(flight.struck);
    EXPECT_TRUE(flight.failure.ok()) << "it may be posted again";
  }
  Flight last = struck(7, Scope::kPath);
  EXPECT_EQ(book.strike(last).message(), "the device says so");
}

TEST(StrikeBook, AChunkThatEachDeviceCallsInvalidFailsForItself) {
  StrikeBook book;
  for (std::uint32_t i = 1; i <= StrikeBook::kPostedAgainMax; ++i) {
    Flight flight = struck(7, Scope::kRequest);
    EXPECT_TRUE(book.strike(flight).ok());
    EXPECT_TRUE(flight.failure.ok()) << i;
  }
  Flight last = struck(7, Scope::kRequest);
  EXPECT_TRUE(book.strike(last).ok()) << "the path is not at fault";
  EXPECT_EQ(last.failure.scope(), Scope::kRequest);
  EXPECT_EQ(last.failure.message(), "it was posted 3 times, and failed each time");
}

TEST(StrikeBook, CountsForEachChunkUntilItEnds) {
  StrikeBook book;
  for (std::uint64_t cookie = 0; cookie < 2 * StrikeBook::kStrikesMax; ++cookie) {
    Flight flight = struck(cookie, Scope::kPath);
    EXPECT_TRUE(book.strike(flight).ok()) << "another chunk each time";
  }
  for (std::uint32_t i = 0; i < 2 * StrikeBook::kStrikesMax; ++i) {
    book.forget(3);
    Flight flight = struck(3, Scope::kPath);
    EXPECT_TRUE(book.strike(flight).ok()) << "the number was given anew";
  }
}

}  // namespace
}  // namespace hawser::backend::verbs
