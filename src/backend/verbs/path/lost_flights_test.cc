#include "backend/verbs/path/lost_flights.h"

#include <gtest/gtest.h>

#include <vector>

namespace hawser::backend::verbs {
namespace {

constexpr Duration kFencedWithin = std::chrono::seconds(2);
const Instant kLostAt = Instant::min() + std::chrono::seconds(1000);

Flight flight(std::uint64_t cookie, std::uint64_t immediate = 0) {
  Flight made;
  made.chunk.cookie = cookie;
  made.chunk.transfer = 100 + cookie;
  made.immediate = immediate;
  return made;
}

std::vector<std::uint64_t> cookies(const std::vector<Flight>& flights) {
  std::vector<std::uint64_t> all;
  for (const Flight& each : flights) all.push_back(each.chunk.cookie);
  return all;
}

TEST(LostFlights, WaitForTheFenceAsLongAsThePatienceLasts) {
  LostFlights lost;
  EXPECT_EQ(lost.next_deadline(), Instant::max());
  lost.add({flight(1), flight(2)}, 3, kLostAt, kFencedWithin);
  EXPECT_EQ(lost.size(), 2u);
  EXPECT_EQ(lost.next_deadline(), kLostAt + kFencedWithin);
  EXPECT_FALSE(lost.is_stuck(kLostAt + kFencedWithin - Duration(1)));
  EXPECT_TRUE(lost.is_stuck(kLostAt + kFencedWithin));
  EXPECT_EQ(cookies(lost.take_all()), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_TRUE(lost.empty());
  EXPECT_FALSE(lost.is_stuck(kLostAt + kFencedWithin));
}

TEST(LostFlights, ThePatienceIsThatOfTheFirstThatWaits) {
  LostFlights lost;
  lost.add({flight(1)}, 3, kLostAt, kFencedWithin);
  lost.add({flight(2)}, 4, kLostAt + std::chrono::seconds(1), kFencedWithin);
  EXPECT_EQ(lost.next_deadline(), kLostAt + kFencedWithin);
  lost.take_all();
  lost.add({flight(3)}, 5, kLostAt + kFencedWithin, kFencedWithin);
  EXPECT_EQ(lost.next_deadline(), kLostAt + 2 * kFencedWithin);
}

TEST(LostFlights, NoneLostNeedNoFence) {
  LostFlights lost;
  lost.add({}, 3, kLostAt, kFencedWithin);
  EXPECT_FALSE(lost.is_stuck(kLostAt + kFencedWithin));
  EXPECT_EQ(lost.next_deadline(), Instant::max());
}

TEST(LostFlights, WhatIsCancelledIsOverOnceNothingIsOnItsWay) {
  LostFlights lost;
  lost.add({flight(1), flight(2), flight(3)}, 3, kLostAt, kFencedWithin);
  EXPECT_TRUE(lost.take_quiet(kLostAt + LostFlights::kLinger).empty()) << "none is cancelled";
  lost.cancel(102);
  EXPECT_EQ(lost.next_deadline(), kLostAt + LostFlights::kLinger);
  EXPECT_TRUE(lost.take_quiet(kLostAt + LostFlights::kLinger - Duration(1)).empty());
  EXPECT_EQ(cookies(lost.take_quiet(kLostAt + LostFlights::kLinger)), std::vector<std::uint64_t>{2});
  EXPECT_EQ(cookies(lost.take_all()), (std::vector<std::uint64_t>{1, 3}));
}

TEST(LostFlights, WhatThePeerCountedHasLanded) {
  LostFlights lost;
  lost.add({flight(1, 1), flight(2), flight(3, 2), flight(4, 3)}, 3, kLostAt, kFencedWithin);
  EXPECT_TRUE(lost.take_counted(2, 9).empty()) << "a count of another connection";
  EXPECT_EQ(cookies(lost.take_counted(3, 2)), (std::vector<std::uint64_t>{1, 3}));
  EXPECT_EQ(cookies(lost.take_all()), (std::vector<std::uint64_t>{2, 4}));
}

TEST(LostFlights, OfAPathThatGoesDownNothingIsEverDue) {
  LostFlights lost;
  lost.add({flight(1)}, 3, Instant::max(), kFencedWithin);
  EXPECT_EQ(lost.next_deadline(), Instant::max());
  EXPECT_EQ(lost.take_all().size(), 1u);
}

}  // namespace
}  // namespace hawser::backend::verbs
