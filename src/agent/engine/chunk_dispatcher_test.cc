// Chunks are offered to paths, their ends are heard, and what a lost path did not bring over is offered again.

#include "agent/engine/chunk_dispatcher.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class ChunkDispatcherTest : public ::testing::Test {
 protected:
  Slot& start(std::uint32_t chunks, bool has_notification = false) {
    Slot& slot = rig_.slot_of(rig_.plan_of(peer_, chunks));
    slot.phase = Phase::kInFlight;
    if (has_notification) slot.notify_size = 0;
    EXPECT_TRUE(rig_.engine.dispatcher().start(slot, rig_.now()).ok());
    return slot;
  }
  /// One that follows `leader`.
  Slot& start_behind(Slot& leader) {
    Slot& slot = rig_.slot_of(rig_.plan_of(peer_));
    slot.phase = Phase::kInFlight;
    slot.has_extras = true;
    rig_.slots.follow(slot, leader);
    EXPECT_TRUE(rig_.engine.dispatcher().start(slot, rig_.now()).ok());
    return slot;
  }
  static bool is_over(const Slot& slot) { return slot.plan == nullptr; }
  Session& session() { return *peer_->session(); }

  Rig rig_;
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
  HandPath& path_ = rig_.connect(peer_);
};

TEST_F(ChunkDispatcherTest, ATransferIsOverWhenAllItsChunksHaveEnded) {
  Slot& slot = start(3);
  ASSERT_EQ(path_.submitted.size(), 3u);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(path_.submitted[i].index, i);
  for (const backend::Chunk& chunk : path_.submitted) {
    EXPECT_FALSE(is_over(slot));
    rig_.end_chunk(rig_.first, path_, chunk);
  }
  EXPECT_TRUE(is_over(slot));
  EXPECT_TRUE(slot.status.ok());
  EXPECT_EQ(slot.bytes_done.load(), 24u);
  EXPECT_EQ(session().flow.writes, 1u);
}

TEST_F(ChunkDispatcherTest, WhatAPathHasNoRoomForIsOfferedLater) {
  path_.chunk_room = 2;
  Slot& slot = start(3);
  EXPECT_EQ(path_.submitted.size(), 2u);
  path_.chunk_room = 5;
  rig_.pass(1ms);
  rig_.turn();
  ASSERT_EQ(path_.submitted.size(), 3u);
  EXPECT_EQ(path_.submitted[2].index, 2u);
  EXPECT_FALSE(is_over(slot));
}

TEST_F(ChunkDispatcherTest, ASmallOnePassesLargeOnesThatAreBlockedAndNoLowerPriorityDoes) {
  path_.largest_chunk = backend::kSmallChunk;
  const auto start = [&](std::uint64_t bytes, Priority priority) -> Slot& {
    Slot& slot = rig_.slot_of(rig_.plan_of(peer_, 1, bytes));
    slot.phase = Phase::kInFlight;
    slot.priority = priority;
    EXPECT_TRUE(rig_.engine.dispatcher().start(slot, rig_.now()).ok());
    return slot;
  };
  start(backend::kSmallChunk + 1, Priority::kRealtime);
  start(backend::kSmallChunk + 1, Priority::kRealtime);
  const Slot& small = start(backend::kSmallChunk, Priority::kRealtime);
  start(8, Priority::kBulk);
  ASSERT_EQ(path_.submitted.size(), 1u);
  EXPECT_EQ(path_.submitted[0].transfer, small.id);
}

TEST_F(ChunkDispatcherTest, ChunksOfALostPathGoByAnotherWithTheirNumbers) {
  HandPath& other = *rig_.second.port->make();
  rig_.come_up(rig_.second, other, *peer_, 2);
  rig_.be_welcomed(rig_.second, other);
  Slot& slot = start(2);
  const Status lost = Status(Code::kDisconnected, "the cable").with_scope(Scope::kPath);
  rig_.end_chunk(rig_.first, path_, path_.submitted[0]);
  path_.chunk_room = 0;
  rig_.end_chunk(rig_.first, path_, path_.submitted[1], lost.with_buffer(BufferState::kUntouched));
  rig_.go_down(rig_.first, path_, lost);
  rig_.be_welcomed(rig_.second, other);
  rig_.turn();
  ASSERT_EQ(other.submitted.size(), 1u);
  EXPECT_EQ(other.submitted[0].index, 1u);
  EXPECT_TRUE(other.submitted[0].again);
  rig_.end_chunk(rig_.second, other, other.submitted[0]);
  EXPECT_TRUE(is_over(slot) && slot.status.ok());
  EXPECT_EQ(session().flow.retries, 1u);
}

TEST_F(ChunkDispatcherTest, AnErrorEndsTheTransferOnceNoChunkIsUnderWay) {
  Slot& slot = start(2);
  rig_.end_chunk(rig_.first, path_, path_.submitted[0], Status(Code::kDenied, "wrong key"));
  EXPECT_EQ(path_.cancelled, std::vector<std::uint64_t>{slot.id});
  EXPECT_FALSE(is_over(slot));
  rig_.end_chunk(rig_.first, path_, path_.submitted[1], Status(Code::kCancelled, "cancelled"));
  EXPECT_TRUE(is_over(slot));
  EXPECT_EQ(slot.status.code(), Code::kDenied);
}

TEST_F(ChunkDispatcherTest, WhereThePathCountsArrivalsThePeerIsToldBeforeTheChunks) {
  path_.sent.clear();
  start(2, true);
  EXPECT_EQ(path_.kinds_sent(), std::vector{wire::SessionKind::kArrive});
  const auto arrive = wire::decode_arrive(*wire::open_envelope(base::as_bytes(path_.sent[0])));
  EXPECT_EQ(arrive->chunks, 2u);
  EXPECT_TRUE(path_.submitted[0].covered);
}

TEST_F(ChunkDispatcherTest, AFollowerBeginsOnceItsLeaderHasEndedWell) {
  Slot& leader = start(1);
  start_behind(leader);
  EXPECT_EQ(path_.submitted.size(), 1u);
  rig_.end_chunk(rig_.first, path_, path_.submitted[0]);
  EXPECT_TRUE(is_over(leader));
  EXPECT_EQ(path_.submitted.size(), 2u);
}

TEST_F(ChunkDispatcherTest, AFollowerEndsWithALeaderThatEndedBadly) {
  Slot& leader = start(1);
  const Slot& follower = start_behind(leader);
  rig_.end_chunk(rig_.first, path_, path_.submitted[0], Status(Code::kDenied, "wrong key"));
  EXPECT_TRUE(is_over(follower));
  EXPECT_EQ(follower.status.code(), Code::kCancelled);
  EXPECT_EQ(path_.submitted.size(), 1u);
}

}  // namespace
}  // namespace hawser::agent
