#include "runtime/failure_desk.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "runtime/rank_bitmap.h"
#include "runtime/test_ranks.h"

namespace hawser::runtime {
namespace {

using wire::RuntimeKind;

/// Rank 0 of a full world of 3.
class FailureDeskTest : public TestRanks {
 protected:
  static constexpr std::uint64_t kWorld = 5;

  FailureDeskTest() { open(desk_, roster_, accord_, {0, 1, 2}); }
  ~FailureDeskTest() override { desk_.close(Status(Code::kCancelled, "the test is over")); }

  void open(FailureDesk& desk, Roster& roster, std::optional<Accord>& accord, const std::vector<std::uint32_t>& ranks) {
    std::vector<Peer> peers;
    for (const std::uint32_t rank : ranks) peers.push_back(ranks_[rank]);
    roster.set_root_ranks(ranks);
    roster.open(std::move(peers));
    accord.emplace(kWorld, "w", 0, roster.peers(), mailbox_);
    desk.open({.world = kWorld,
               .name = "w",
               .roster = &roster,
               .mailbox = &mailbox_,
               .accord = &*accord,
               .heartbeat = std::chrono::milliseconds(100),
               .peer_timeout = std::chrono::milliseconds(400)},
              {.end_collectives = [this](const Status& why, Instant) { ended_.push_back(why); },
               .end_waits_for = [this](std::uint32_t rank, const Status&, Instant) { unwaited_.push_back(rank); },
               .end_calls = [this](const Peer& peer) { uncalled_.push_back(source_of(peer)); },
               .failed = [this] { ++failed_; },
               .excluded = [this](const Status& why) { excluded_.push_back(why); }});
  }
  /// Those that the rank was told of that kind.
  std::vector<wire::RuntimeMessage> words(std::size_t rank, RuntimeKind kind) {
    std::vector<wire::RuntimeMessage> all = told(rank);
    std::erase_if(all, [kind](const wire::RuntimeMessage& word) { return word.kind != kind; });
    return all;
  }
  static Status gone() { return Status(Code::kDisconnected, "it does not answer"); }

  Roster roster_;
  std::optional<Accord> accord_;
  FailureDesk desk_;
  std::vector<Status> ended_, excluded_;
  std::vector<std::uint32_t> unwaited_;
  std::vector<const void*> uncalled_;
  int failed_ = 0;
};

TEST_F(FailureDeskTest, AVerdictIsToldToAllAndFinal) {
  desk_.note_failure(1, gone());
  desk_.note_failure(1, gone());
  EXPECT_EQ(failed_, 1);
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_EQ(ended_[0].code(), Code::kDisconnected);
  EXPECT_EQ(words(2, RuntimeKind::kFailed).size(), 1U);
  ASSERT_EQ(words(1, RuntimeKind::kFailed).size(), 1U) << "that one hears of it, too, if it can";
  EXPECT_EQ(words(1, RuntimeKind::kFailed)[0].rank, 1U);
  EXPECT_TRUE(desk_.fates().has_failed(1));
}

TEST_F(FailureDeskTest, AGuestThatClosesSaysSoAndIsNobodyToSendTo) {
  roster_.set_guests({false, true, true});
  EXPECT_TRUE(desk_.why_gone(1).ok());
  desk_.on_failed(ranks_[1], 1, true);
  EXPECT_TRUE(desk_.fates().has_failed(1) && desk_.fates().is_dead(1));
  EXPECT_EQ(uncalled_, std::vector<const void*>{source_of(ranks_[1])});
  EXPECT_EQ(desk_.why_gone(1).code(), Code::kDisconnected);
  EXPECT_NE(desk_.why_gone(1).to_string().find("it closed the world"), std::string::npos);
  EXPECT_EQ(words(2, RuntimeKind::kFailed).size(), 1U) << "it may not have told all";
  desk_.on_left(ranks_[2]);
  EXPECT_EQ(desk_.why_gone(2).code(), Code::kDisconnected);
  EXPECT_EQ(uncalled_.size(), 2U);
}

TEST_F(FailureDeskTest, OfARankWithAnAgentOfItsOwnTheSessionsEndSaysIt) {
  desk_.on_left(ranks_[1]);
  EXPECT_TRUE(desk_.why_gone(1).ok());
  EXPECT_TRUE(uncalled_.empty());
  desk_.on_failed(ranks_[2], 2, true);  // The others excluded it, and it knows.
  EXPECT_TRUE(desk_.fates().has_failed(2));
  EXPECT_TRUE(desk_.why_gone(2).ok());
}

TEST_F(FailureDeskTest, ALossAloneIsNoVerdict) {
  desk_.on_down(ranks_[1], gone());
  EXPECT_EQ(uncalled_, std::vector<const void*>{source_of(ranks_[1])});
  EXPECT_TRUE(desk_.is_undecided());
  EXPECT_FALSE(desk_.fates().has_failed(1));
  EXPECT_EQ(failed_, 0);
  EXPECT_EQ(ended_.size(), 1U) << "together the two do nothing any more";
  EXPECT_TRUE(words(2, RuntimeKind::kFailed).empty());
  EXPECT_EQ(words(2, RuntimeKind::kLost).size(), 1U);
}

TEST_F(FailureDeskTest, WhoHasLeftHasNotFailed) {
  desk_.on_left(ranks_[2]);
  desk_.on_left(ranks_[2]);
  desk_.on_down(ranks_[2], gone());
  EXPECT_EQ(unwaited_, std::vector<std::uint32_t>{2});
  EXPECT_EQ(failed_, 0);
  EXPECT_FALSE(desk_.is_undecided());
  EXPECT_TRUE(desk_.fates().has_left(2));
}

TEST_F(FailureDeskTest, WhoIsHeldForFailedTellsTheOthersAndStops) {
  desk_.on_failed(ranks_[2], 0, false);
  ASSERT_EQ(excluded_.size(), 1U);
  EXPECT_NE(excluded_[0].message().find("rank 2 of world 'w' holds this rank, 0, for failed"), std::string::npos);
  EXPECT_TRUE(desk_.fates().is_excluded());
  ASSERT_EQ(words(1, RuntimeKind::kFailed).size(), 1U) << "who told it may die before it tells the others";
  EXPECT_EQ(words(1, RuntimeKind::kFailed)[0].rank, 0U);
  desk_.on_down(ranks_[1], gone());
  EXPECT_FALSE(desk_.is_undecided()) << "the others go on without this rank";
}

TEST_F(FailureDeskTest, AFailedRankAndAStrangerConvictNobody) {
  desk_.note_failure(2, gone());
  desk_.on_failed(ranks_[2], 1, false);
  EXPECT_FALSE(desk_.fates().has_failed(1));
  desk_.on_failed(ranks_[1], 3, false);
  EXPECT_EQ(failed_, 1) << "there is no rank 3";
}

TEST_F(FailureDeskTest, ARevokedWorldEndsOnceAndSaysWhy) {
  desk_.revoke(Status(Code::kCancelled, "enough"), true, kMoment);
  desk_.revoke(Status(Code::kCancelled, "again"), true, kMoment);
  ASSERT_EQ(ended_.size(), 1U);
  ASSERT_EQ(words(1, RuntimeKind::kRevoke).size(), 1U);
  desk_.tell_revoked_again(kMoment);
  EXPECT_EQ(words(1, RuntimeKind::kRevoke).size(), 2U);
  desk_.tell_why_not(ranks_[2], kMoment);
  EXPECT_EQ(words(2, RuntimeKind::kRevoke).size(), 3U) << "it asked";
}

TEST_F(FailureDeskTest, WhileACourtIsOpenTheOthersGoOn) {
  desk_.on_down(ranks_[1], gone());
  desk_.revoke_once_decided(Status(Code::kCancelled, "shrunk"), kMoment);
  EXPECT_TRUE(words(2, RuntimeKind::kRevoke).empty());
  desk_.tell_why_not(ranks_[2], kMoment);
  EXPECT_TRUE(words(2, RuntimeKind::kRevoke).empty()) << "it will hear who failed";
  desk_.note_failure(1, gone());
  EXPECT_FALSE(desk_.is_undecided());
  EXPECT_EQ(words(2, RuntimeKind::kRevoke).size(), 1U);
}

TEST_F(FailureDeskTest, AnotherRanksRevocationNamesIt) {
  desk_.on_revoke(ranks_[1], Status(Code::kInvalid, "they differ"));
  EXPECT_NE(desk_.fates().revoked().message().find("rank 1 revoked world 'w': they differ"), std::string_view::npos);
  EXPECT_TRUE(words(2, RuntimeKind::kRevoke).empty()) << "it has told all by itself";
}

TEST_F(FailureDeskTest, AGroupTakesOverWhatItsRanksKnow) {
  desk_.note_failure(1, gone());
  Roster roster;
  std::optional<Accord> accord;
  FailureDesk group;
  open(group, roster, accord, {0, 1});
  failed_ = 0;
  group.take_over(desk_, std::vector<std::uint32_t>{0, 1});
  EXPECT_TRUE(group.fates().has_failed(1));
  EXPECT_EQ(failed_, 1);
  group.close(Status(Code::kCancelled, "the test is over"));
}

}  // namespace
}  // namespace hawser::runtime
