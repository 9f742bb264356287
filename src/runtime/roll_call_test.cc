#include "runtime/roll_call.h"

#include <gtest/gtest.h>

namespace hawser::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kBegun = Instant::from_ns(5'000'000);

TEST(RollCall, LooksEachSecondAndShortlyBeforeTheDeadline) {
  RollCall roll;
  roll.begin(kBegun, kBegun + milliseconds(1500));
  EXPECT_EQ(roll.next(kBegun), kBegun + seconds(1));
  EXPECT_EQ(roll.next(kBegun + seconds(1)), kBegun + milliseconds(1300));
  EXPECT_EQ(roll.next(kBegun + milliseconds(1300)), kBegun + milliseconds(1500));
  EXPECT_FALSE(roll.is_late(kBegun + milliseconds(1499)));
  EXPECT_TRUE(roll.is_late(kBegun + milliseconds(1500)));
}

TEST(RollCall, OfAShortTimeTheLastQuarterIsForTheAnswers) {
  RollCall roll;
  roll.begin(kBegun, kBegun + milliseconds(100));
  EXPECT_EQ(roll.next(kBegun), kBegun + milliseconds(75));
  EXPECT_FALSE(roll.ask(kBegun + milliseconds(74), true));
  EXPECT_TRUE(roll.ask(kBegun + milliseconds(75), false));
}

TEST(RollCall, WithoutADeadlineItTellsOnceAfterTenSeconds) {
  RollCall roll;
  roll.begin(kBegun, Instant::max());
  EXPECT_EQ(roll.next(kBegun), kBegun + seconds(1));
  EXPECT_FALSE(roll.ask(kBegun + milliseconds(8999), true));
  EXPECT_TRUE(roll.ask(kBegun + seconds(9), true)) << "the answers are there when it tells";
  EXPECT_FALSE(roll.take_told(kBegun + milliseconds(9999)));
  EXPECT_TRUE(roll.take_told(kBegun + seconds(10)));
  EXPECT_FALSE(roll.take_told(kBegun + seconds(11))) << "once";
  EXPECT_FALSE(roll.ask(kBegun + seconds(11), true));
}

TEST(RollCall, OneThatWaitedBehindAnotherTellsOnceAllHaveBeenAsked) {
  RollCall roll;
  roll.begin(kBegun, Instant::max());
  EXPECT_FALSE(roll.ask(kBegun + seconds(60), false));
  EXPECT_FALSE(roll.take_told(kBegun + seconds(61)));
  EXPECT_TRUE(roll.ask(kBegun + seconds(61), true));
  EXPECT_TRUE(roll.take_told(kBegun + seconds(62)));
}

TEST(RollCall, ThoseThatAnsweredSinceItLastAskedAreAbsent) {
  RollCall roll;
  roll.note_absent(3);
  roll.note_absent(1);
  roll.note_absent(3);
  EXPECT_EQ(roll.absent(), (std::vector<std::uint32_t>{1, 3}));
  roll.ask(kBegun, false);
  EXPECT_TRUE(roll.absent().empty());
}

}  // namespace
}  // namespace hawser::runtime
