#include "runtime/hearing.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "runtime/rank_bitmap.h"
#include "runtime/test_ranks.h"

namespace hawser::runtime {
namespace {

using std::chrono::milliseconds;

/// Rank 0 of a world of 3.
class HearingTest : public TestRanks {
 protected:
  void begin(Duration heartbeat, Duration peer_timeout) {
    hearing_.emplace(
        Hearing::Site{.world = 5, .rank = 0, .ranks = ranks_, .heartbeat = heartbeat, .peer_timeout = peer_timeout},
        mailbox_,
        Hearing::Hooks{.convict =
                           [this](std::uint32_t rank) {
                             convicted_.push_back(rank);
                             hearing_->note_gone(rank);
                           },
                       .decided = [this](Instant) { ++decided_; }});
  }
  /// As the lane does when this moment has come.
  void expire(Duration after) {
    carrier_.moment = kMoment + after;
    (void)mailbox_.expire(carrier_.moment);
  }

  std::vector<std::uint32_t> convicted_;
  int decided_ = 0;
  std::optional<Hearing> hearing_;
};

TEST_F(HearingTest, ALossIsToldAndLeavesItUndecided) {
  begin(milliseconds(100), milliseconds(400));
  hearing_->note_lost(1);
  EXPECT_TRUE(hearing_->is_undecided());
  EXPECT_EQ(hearing_->lost(), std::vector<std::uint32_t>{1});
  const std::vector<wire::RuntimeMessage> words = told(2);
  ASSERT_EQ(words.size(), 1U);
  EXPECT_EQ(words[0].kind, wire::RuntimeKind::kLost);
  EXPECT_EQ(words[0].world, 5U);
  EXPECT_EQ(ranks_of(words[0].body, 3), (std::vector<bool>{false, true, false}));
  EXPECT_TRUE(words[0].flag) << "it asks";
  EXPECT_EQ(decided_, 0);
}

TEST_F(HearingTest, AVerdictEndsItAndItsDeadline) {
  begin(milliseconds(100), milliseconds(400));
  hearing_->note_lost(1);
  EXPECT_EQ(mailbox_.next_deadline(), kMoment + milliseconds(200));
  hearing_->hear(2, base::as_bytes(bitmap_of({false, true, false})), false);
  EXPECT_EQ(convicted_, std::vector<std::uint32_t>{1});
  EXPECT_FALSE(hearing_->is_undecided());
  EXPECT_GE(decided_, 1);
  EXPECT_EQ(mailbox_.next_deadline(), Instant::max());
}

TEST_F(HearingTest, WhoIsNotAnsweredGivesUp) {
  begin(milliseconds(100), milliseconds(400));
  hearing_->note_lost(1);
  expire(milliseconds(199));
  EXPECT_EQ(mailbox_.next_deadline(), kMoment + milliseconds(200)) << "all losses may still show";
  expire(milliseconds(200));
  EXPECT_EQ(mailbox_.next_deadline(), kMoment + milliseconds(600));
  expire(milliseconds(599));
  EXPECT_TRUE(convicted_.empty());
  expire(milliseconds(600));
  EXPECT_EQ(convicted_, std::vector<std::uint32_t>{1});
}

TEST_F(HearingTest, SlowHeartbeatsDoNotDelayItFurtherThanASecondAndAHalf) {
  begin(std::chrono::seconds(10), std::chrono::seconds(60));
  hearing_->note_lost(1);
  EXPECT_EQ(mailbox_.next_deadline(), kMoment + milliseconds(500));
  expire(milliseconds(500));
  EXPECT_EQ(mailbox_.next_deadline(), kMoment + milliseconds(1500));
}

TEST_F(HearingTest, OneThatEndsLeavesNoDeadline) {
  begin(milliseconds(100), milliseconds(400));
  hearing_->note_lost(1);
  hearing_.reset();
  EXPECT_EQ(mailbox_.next_deadline(), Instant::max());
}

}  // namespace
}  // namespace hawser::runtime
