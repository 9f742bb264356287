#include "runtime/collective_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/collective_maker.h"
#include "runtime/rank_list.h"
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
               .explained = [this](const Status& status) { return explained_.ok() ? status : explained_; },
               .warn = [this](const std::string& text) { log_.push_back(text); }});
  }
  std::shared_ptr<Collective> begin(Instant deadline = Instant::max()) {
    auto made = maker_.make({.call = {.operation = schedule::Operation::kBarrier}}, {}).value();
    book_.begin(made, deadline, kMoment);
    return made;
  }
  bool is_asked(std::size_t rank) {
    const auto is_question = [](const wire::RuntimeMessage& said) { return said.kind == wire::RuntimeKind::kCheck; };
    return std::ranges::any_of(told(rank), is_question);
  }
  wire::MessageEnvelope envelope(std::uint64_t number, std::uint64_t digest) const {
    return {.world = 5, .use = wire::MessageUse::kCollective, .tag = number, .digest = digest};
  }

  CollectiveMaker maker_;
  CollectiveBook book_;
  Status why_not_, explained_;
  std::vector<Status> revoked_;
  std::vector<std::string> log_;
};

TEST_F(CollectiveBookTest, EachHasTheNextNumberAndEndAllEndsThem) {
  EXPECT_EQ(book_.last_number(), 0U);
  const auto first = begin(), second = begin();
  EXPECT_EQ(first->number, 1U);
  EXPECT_EQ(second->number, 2U);
  EXPECT_EQ(book_.last_number(), 2U);
  EXPECT_EQ(first->title(), "barrier number 1 of world 'w'");
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
  EXPECT_EQ(book_.on_check(ranks_[1], {.number = 1, .digest = 7}, kMoment), Answer::kNotYet);
  const auto first = begin();
  const Question same = {.number = 1, .digest = first->digest};
  EXPECT_EQ(book_.on_check(ranks_[1], same, kMoment), Answer::kNone) << "the same, under way";
  first->fail(Status(Code::kDisconnected, "gone"), kMoment);
  EXPECT_EQ(book_.on_check(ranks_[1], same, kMoment), Answer::kOver);
  why_not_ = Status(Code::kCancelled, "the world was revoked");
  EXPECT_EQ(book_.on_check(ranks_[1], same, kMoment), Answer::kEnded);
  const Question only = {.number = 1, .digest = first->digest, .awaits = false};
  EXPECT_EQ(book_.on_check(ranks_[1], only, kMoment), Answer::kNone) << "that rank waits for nothing of this one's";
}

TEST_F(CollectiveBookTest, WhoAsksForAnotherCallEndsThisOne) {
  const auto first = begin();
  EXPECT_EQ(book_.on_check(ranks_[1], {.number = 1, .digest = first->digest + 1}, kMoment),
            CollectiveBook::Answer::kNone);
  EXPECT_EQ(first->status.code(), Code::kInvalid);
}

TEST_F(CollectiveBookTest, AnAwaitedRankThatIsPastOrClosedEndsTheCall) {
  const auto first = begin();
  const std::uint32_t awaited = first->awaited().at(0), other = 3 - awaited;
  book_.on_checked(ranks_[other], 1, Code::kInvalid, kMoment);
  EXPECT_FALSE(first->is_over()) << "nothing is awaited of that rank";
  book_.on_checked(ranks_[awaited], 2, Code::kInvalid, kMoment);
  EXPECT_FALSE(first->is_over()) << "another number";
  book_.on_checked(ranks_[awaited], 1, Code::kDisconnected, kMoment);
  EXPECT_EQ(first->status.code(), Code::kDisconnected);
  EXPECT_NE(first->status.message().find("has closed the world"), std::string::npos);
  ASSERT_EQ(revoked_.size(), 1U);
}

TEST_F(CollectiveBookTest, TheErrorOfADeadlineNamesThoseThatHaveNotCalledIt) {
  using std::chrono::milliseconds;
  const auto first = begin(kMoment + milliseconds(400));
  first->on_late(*first, kMoment + milliseconds(300));
  for (const std::size_t rank : {1, 2}) {
    EXPECT_TRUE(is_asked(rank)) << "all are asked, also those that it does not await";
  }
  book_.on_checked(ranks_[2], 1, Code::kBusy, kMoment);
  book_.on_checked(ranks_[1], 2, Code::kBusy, kMoment);  // Of another number, and so not of this one.
  ASSERT_FALSE(first->is_over());
  const std::vector<std::uint32_t> awaited = first->awaited();
  first->on_late(*first, kMoment + milliseconds(400));
  EXPECT_EQ(first->status.message(), "barrier number 1 of world 'w' did not end by its deadline; it waits for rank " +
                                         list_of(awaited) + "; rank 2 has not called it");
}

TEST_F(CollectiveBookTest, AfterTenSecondsTheLogNamesThemOnceForAllThatWait) {
  using std::chrono::seconds;
  const auto first = begin(), second = begin();
  for (int second_of_it = 1; second_of_it <= 12; ++second_of_it) {
    for (const auto& each : {second, first}) each->on_late(*each, kMoment + seconds(second_of_it));
    book_.on_checked(ranks_[2], 1, Code::kBusy, kMoment);
    book_.on_checked(ranks_[1], 1, Code::kBusy, kMoment);
    EXPECT_EQ(log_.size(), second_of_it < 10 ? 0U : 1U);
  }
  const std::string start = "barrier number 1 of world 'w' has not ended after 10s; it waits for rank ";
  EXPECT_TRUE(log_.at(0).starts_with(start)) << log_[0];
  EXPECT_TRUE(log_[0].ends_with("; ranks 1, 2 have not called it")) << log_[0];
  first->fail(Status(Code::kDisconnected, "a path ended"), kMoment + seconds(12));
  second->on_late(*second, kMoment + seconds(13));
  book_.on_checked(ranks_[1], 2, Code::kBusy, kMoment);
  second->on_late(*second, kMoment + seconds(14));
  ASSERT_EQ(log_.size(), 2U) << "now it is the one that holds up others";
  EXPECT_TRUE(log_[1].starts_with("barrier number 2 of world 'w' has not ended after 10s")) << log_[1];
  EXPECT_TRUE(log_[1].ends_with("; rank 1 has not called it")) << log_[1];
}

TEST_F(CollectiveBookTest, ACallThatEndsAtOnceHasANumberLikeAllOthers) {
  const auto ticket = book_.take_ticket(7, {}, kMoment);
  ASSERT_TRUE(ticket.has_value());
  EXPECT_EQ(ticket->number, 1U);
  EXPECT_FALSE(book_.is_misfit(envelope(2, 7)));
  EXPECT_TRUE(book_.is_misfit(envelope(1, 8))) << "the ledger has it";
  book_.end_well(*ticket, kMoment);
  EXPECT_EQ(book_.last_good(), 1U);
  EXPECT_EQ(begin()->number, 2U);
  EXPECT_TRUE(revoked_.empty());
}

TEST_F(CollectiveBookTest, WhatMayNotBeginTakesNoNumber) {
  why_not_ = Status(Code::kCancelled, "the world was revoked");
  EXPECT_FALSE(book_.take_ticket(7, {}, kMoment).has_value());
  EXPECT_EQ(book_.last_number(), 0U);
}

TEST_F(CollectiveBookTest, ACallThatDidNotEndAtOnceIsUnderWayFromThenOn) {
  using std::chrono::milliseconds;
  const auto ticket = book_.take_ticket(7, {}, kMoment);
  ASSERT_TRUE(ticket.has_value());
  auto made = maker_.make({.call = {.operation = schedule::Operation::kBarrier}}, {}).value();
  made->digest = 7;
  book_.take_over(made, *ticket, kMoment + milliseconds(400), kMoment);
  EXPECT_EQ(made->number, 1U);
  EXPECT_EQ(book_.on_check(ranks_[1], {.number = 1, .digest = 7}, kMoment), CollectiveBook::Answer::kNone);
  made->on_late(*made, kMoment + milliseconds(400));
  EXPECT_EQ(made->status.code(), Code::kTimedOut);
  EXPECT_EQ(book_.last_good(), 0U);
}

TEST_F(CollectiveBookTest, TheStatusOfOneThatEndsBadlyIsExplained) {
  explained_ = Status(Code::kDisconnected, "rank 1 has left");
  const auto first = begin();
  first->fail(Status(Code::kDisconnected, "a path ended"), kMoment);
  EXPECT_EQ(first->status.message(), "rank 1 has left");
}

}  // namespace
}  // namespace hawser::runtime
