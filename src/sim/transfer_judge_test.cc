#include "sim/transfer_judge.h"

#include <gtest/gtest.h>

#include "sim/test_lives.h"

namespace hawser::simulation {
namespace {

using namespace std::chrono_literals;

/// A write of 64 bytes from `a` to `b`, whose handle nobody holds, so that its completion tells its end.
struct TransferJudgeTest : testing::Test, TwoLives {
  TransferJudgeTest() {
    course.from = &a;
    course.to = &b;
    course.bytes = 64;
    const Lease lease{.first_cell = 0, .cell_count = 1, .offset = 0, .size = 64};
    course.pairs.push_back({.local = &local, .remote = &remote, .local_lease = lease, .remote_lease = lease});
  }
  Move& submit() {
    Move& move = judge.make(course);
    course.latest = &move;
    move.held = false;
    move.queued = true;
    move.submitted = universe.world.now();
    move.due = move.submitted + 1s;
    return move;
  }
  void land(const Move& move) { fill_pattern(remote.plot->bytes(course.pairs[0].remote_lease), move.uid, 0); }
  void end(const Move& move, const Status& status = {}) {
    Completion entry;
    entry.cookie = move.uid;
    entry.status = status;
    judge.on_completion(a, entry);
  }
  bool says(std::string_view what) const { return verdict.failure().find(what) != std::string::npos; }

  Area& local = add_area(a, 64);
  Area& remote = add_area(b, 64);
  Course course;
  TransferJudge judge{{.universe = universe, .verdict = verdict, .reasons = reasons, .writers = writers}};
};

TEST_F(TransferJudgeTest, AWriteThatEndedWellHasItsBytesThere) {
  const Move& move = submit();
  EXPECT_EQ(judge.find(move.uid), &move);
  EXPECT_FALSE(TransferJudge::any_landed(move));
  land(move);
  EXPECT_TRUE(TransferJudge::all_landed(move));
  end(move);
  EXPECT_FALSE(verdict.failed()) << verdict.failure();
  EXPECT_EQ(a.good_writes, 1u);
  EXPECT_EQ(judge.good(), 1u);
  EXPECT_TRUE(TransferJudge::idle(course));
}

TEST_F(TransferJudgeTest, ElseItShows) {
  end(submit());
  EXPECT_TRUE(says("ended well, but its bytes are not at")) << verdict.failure();
}

TEST_F(TransferJudgeTest, ACompletionComesOnceAndWithACookieOfOurs) {
  const Move& move = submit();
  land(move);
  end(move);
  end(move);
  EXPECT_TRUE(says("was completed twice")) << verdict.failure();
  EXPECT_EQ(judge.find(99), nullptr);
}

TEST_F(TransferJudgeTest, ABadEndNeedsAReason) {
  end(submit(), Status(Code::kDisconnected, "gone"));
  EXPECT_TRUE(says("nothing parted them for good")) << verdict.failure();
}

TEST_F(TransferJudgeTest, UntouchedMeansUntouched) {
  Move& move = submit();
  move.ended_by_us = true;
  land(move);
  end(move, Status(Code::kCancelled, "cancelled").with_buffer(BufferState::kUntouched));
  EXPECT_TRUE(says("left the target untouched")) << verdict.failure();
}

TEST_F(TransferJudgeTest, ANotificationComesOnceAndAfterTheBytes) {
  Move& move = submit();
  move.notify = true;
  judge.on_notified(b, a, move);
  EXPECT_TRUE(says("came before its bytes")) << verdict.failure();
}

TEST_F(TransferJudgeTest, WhatAGoodWriteBroughtStays) {
  const Move& move = submit();
  land(move);
  end(move);
  judge.check_stays(course);
  EXPECT_FALSE(verdict.failed()) << verdict.failure();
  remote.plot->bytes()[5] ^= std::byte{1};
  judge.check_stays(course);
  EXPECT_TRUE(says("did not stay")) << verdict.failure();
}

TEST_F(TransferJudgeTest, LocalMemoryIsLeftAloneAfterTheEnd) {
  const Move& move = submit();
  land(move);
  end(move);
  local.plot->bytes()[5] ^= std::byte{1};
  judge.check_memory(a, course);
  EXPECT_TRUE(says("was touched after transfer")) << verdict.failure();
}

TEST_F(TransferJudgeTest, WhatIsOwedIsToldAtLast) {
  Move& move = submit();
  move.notify = true;
  land(move);
  end(move);
  EXPECT_FALSE(judge.are_told());
  EXPECT_FALSE(TransferJudge::idle(course)) << "its notification is on its way";
  judge.check_settled();
  EXPECT_TRUE(says("never came")) << verdict.failure();
}

TEST_F(TransferJudgeTest, OneThatWasRefusedNeverWas) {
  judge.drop(submit());
  EXPECT_EQ(judge.count(), 0u);
}

}  // namespace
}  // namespace hawser::simulation
