#include "runtime/collective_book.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/collective_maker.h"
#include "runtime/test_ranks.h"

namespace hawser::runtime {
namespace {

/// Rank 0 of a world of three, whose other ranks say what the test says.
class CollectiveBookTest : public TestRanks {
 protected:
  CollectiveBookTest() {
    open(book_, ranks_);
    maker_.open(
        {.world = 5, .name = "w", .rank = 0, .ranks = ranks_, .mailbox = &mailbox_, .map = nullptr, .room = nullptr});
  }
  ~CollectiveBookTest() override { book_.end_all(Status(Code::kCancelled, "the test is over"), kMoment); }

  void open(CollectiveBook& book, std::span<const Peer> ranks) {
    book.open({.world = 5, .name = "w", .ranks = ranks, .mailbox = &mailbox_},
              {.why_not = [this] { return why_not_; },
               .rank_of = [this](const Peer& peer) -> std::optional<std::uint32_t> {
                 for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
                   if (source_of(ranks_[rank]) == source_of(peer)) return rank;
                 }
                 return std::nullopt;
               },
               .revoke =
                   [this](const Status& why, Instant) {
                     revoked_.push_back(why);
                     why_not_ = why;
                   },
               .out_of_sight = [](Collective&, std::uint32_t, Instant) { return false; },
               .explained = [this](const Status& status) { return explained_.ok() ? status : explained_; }});
  }
  std::shared_ptr<Collective> begin() {
    auto made = maker_.make({.call = {.operation = schedule::Operation::kBarrier}}, {}).value();
    book_.begin(made, Instant::max(), kMoment);
    return made;
  }
  wire::MessageEnvelope envelope(std::uint64_t number, std::uint64_t digest) const {
    return {.world = 5, .use = wire::MessageUse::kCollective, .tag = number, .digest = digest};
  }

  CollectiveMaker maker_;
  CollectiveBook book_;
  Status why_not_, explained_;
  std::vector<Status> revoked_;
};

TEST_F(CollectiveBookTest, EachHasTheNextNumberAndEndAllEndsThem) {
  EXPECT_EQ(book_.last_number(), 0U);
  const auto first = begin(), second = begin();
  EXPECT_EQ(first->number, 1U);
  EXPECT_EQ(second->number, 2U);
  EXPECT_EQ(book_.last_number(), 2U);
  EXPECT_EQ(first->name, "barrier number 1 of world 'w'");
  book_.end_all(Status(Code::kDisconnected, "rank 2 failed"), kMoment);
  EXPECT_EQ(first->status.message(), "rank 2 failed");
  EXPECT_EQ(second->status.message(), "rank 2 failed");
  EXPECT_EQ(book_.last_good(), 0U);
  EXPECT_TRUE(revoked_.empty()) << "a failed peer is known by its session";
}

TEST_F(CollectiveBookTest, NothingBeginsInAWorldThatHasEnded) {
  why_not_ = Status(Code::kCancelled, "the world was revoked");
  EXPECT_EQ(begin()->status.message(), "the world was revoked");
  EXPECT_EQ(book_.last_number(), 1U) << "its number is taken, as at the other ranks";
}

TEST_F(CollectiveBookTest, TheLastOneThatAllBeforeAreGoodWithIsKnown) {
  CollectiveBook alone;
  open(alone, std::span(ranks_).first(1));
  CollectiveMaker maker;
  maker.open({.world = 5,
              .name = "w",
              .rank = 0,
              .ranks = std::span(ranks_).first(1),
              .mailbox = &mailbox_,
              .map = nullptr,
              .room = nullptr});
  const CollectiveCall barrier = {.call = {.operation = schedule::Operation::kBarrier}};
  for (int i = 0; i < 3; ++i) alone.begin(maker.make(barrier, {}).value(), Instant::max(), kMoment);
  EXPECT_EQ(alone.last_good(), 3U);
}

TEST_F(CollectiveBookTest, AMessageOfAnotherCallOrOfOneThatIsPastIsAMisfit) {
  const auto first = begin();
  EXPECT_FALSE(book_.is_misfit(envelope(1, first->digest)));
  EXPECT_TRUE(book_.is_misfit(envelope(1, first->digest + 1)));
  EXPECT_FALSE(book_.is_misfit(envelope(2, 9))) << "this rank has not called it yet";
  first->fail(Status(Code::kDisconnected, "gone"), kMoment);
  EXPECT_TRUE(book_.is_misfit(envelope(1, first->digest)));
}

TEST_F(CollectiveBookTest, AMisfitEndsTheCallThatIsUnderWayAndNamesTheRank) {
  const auto first = begin(), second = begin();
  book_.on_misfit(ranks_[2], 1, kMoment);
  EXPECT_EQ(first->status.code(), Code::kInvalid);
  EXPECT_NE(first->status.message().find("another operation at rank 2"), std::string::npos) << first->status.message();
  ASSERT_FALSE(revoked_.empty()) << "the others wait for what this rank will not send";
  EXPECT_FALSE(second->is_over()) << "the world ends it";
}

TEST_F(CollectiveBookTest, AMisfitOfOneThatIsPastEndsTheWorld) {
  begin()->fail(Status(Code::kDisconnected, "gone"), kMoment);
  book_.on_misfit(ranks_[1], 1, kMoment);
  ASSERT_EQ(revoked_.size(), 1U);
  EXPECT_EQ(revoked_[0].code(), Code::kInvalid);
  book_.on_misfit(ranks_[1], 1, kMoment);
  EXPECT_EQ(revoked_.size(), 1U) << "once";
}

TEST_F(CollectiveBookTest, WhoAsksHearsOfWhatIsPast) {
  using Answer = CollectiveBook::Answer;
  EXPECT_EQ(book_.on_check(ranks_[1], 1, 7, kMoment), Answer::kNone) << "not called yet";
  const auto first = begin();
  EXPECT_EQ(book_.on_check(ranks_[1], 1, first->digest, kMoment), Answer::kNone) << "the same, under way";
  first->fail(Status(Code::kDisconnected, "gone"), kMoment);
  EXPECT_EQ(book_.on_check(ranks_[1], 1, first->digest, kMoment), Answer::kOver);
  why_not_ = Status(Code::kCancelled, "the world was revoked");
  EXPECT_EQ(book_.on_check(ranks_[1], 1, first->digest, kMoment), Answer::kEnded);
}

TEST_F(CollectiveBookTest, WhoAsksForAnotherCallEndsThisOne) {
  const auto first = begin();
  EXPECT_EQ(book_.on_check(ranks_[1], 1, first->digest + 1, kMoment), CollectiveBook::Answer::kNone);
  EXPECT_EQ(first->status.code(), Code::kInvalid);
}

TEST_F(CollectiveBookTest, AnAwaitedRankThatIsPastOrClosedEndsTheCall) {
  const auto first = begin();
  const std::uint32_t awaited = first->awaited().at(0), other = 3 - awaited;
  book_.on_over(ranks_[other], 1, Code::kInvalid, kMoment);
  EXPECT_FALSE(first->is_over()) << "nothing is awaited of that rank";
  book_.on_over(ranks_[awaited], 2, Code::kInvalid, kMoment);
  EXPECT_FALSE(first->is_over()) << "another number";
  book_.on_over(ranks_[awaited], 1, Code::kDisconnected, kMoment);
  EXPECT_EQ(first->status.code(), Code::kDisconnected);
  EXPECT_NE(first->status.message().find("has closed the world"), std::string::npos);
  ASSERT_EQ(revoked_.size(), 1U);
}

TEST_F(CollectiveBookTest, TheStatusOfOneThatEndsBadlyIsExplained) {
  explained_ = Status(Code::kDisconnected, "rank 1 has left");
  const auto first = begin();
  first->fail(Status(Code::kDisconnected, "a path ended"), kMoment);
  EXPECT_EQ(first->status.message(), "rank 1 has left");
}

}  // namespace
}  // namespace hawser::runtime
