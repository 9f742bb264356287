#include "proto/arrival.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/rng.h"

namespace hawser::proto {
namespace {

using State = ArrivalState;

TEST(Arrival, ChunksThenArrive) {
  ArrivalTable table;
  EXPECT_EQ(table.on_chunk(5, 0).state, State::kWaiting);
  EXPECT_EQ(table.on_chunk(5, 1).state, State::kWaiting);
  const ArrivalResult last = table.on_arrive(5, 2, 99);
  EXPECT_EQ(last.state, State::kComplete);
  EXPECT_EQ(last.cookie, 99u);
}

TEST(Arrival, ArriveThenChunks) {
  ArrivalTable table;
  EXPECT_EQ(table.on_arrive(5, 2, 99).state, State::kWaiting);
  EXPECT_EQ(table.on_chunk(5, 1).state, State::kWaiting);
  const ArrivalResult last = table.on_chunk(5, 0);
  EXPECT_EQ(last.state, State::kComplete);
  EXPECT_EQ(last.cookie, 99u);
}

TEST(Arrival, WithoutChunksItIsThereAtOnce) {
  ArrivalTable table;
  EXPECT_EQ(table.on_arrive(5, 0, 1).state, State::kComplete);
  EXPECT_EQ(table.on_chunk(6, 3).state, State::kWaiting);  // only one of its rails told of chunks
  EXPECT_EQ(table.on_arrive(6, 0, 2).state, State::kComplete);
}

TEST(Arrival, AWholeOneIsToldOnceAndNotKept) {
  ArrivalTable table;
  const ArrivalResult first = table.on_whole(7, 1);
  EXPECT_EQ(first.state, ArrivalState::kComplete);
  EXPECT_EQ(first.cookie, 1u);
  table.retire(8);
  EXPECT_EQ(table.count(), 0u);
  EXPECT_EQ(table.on_whole(7, 2).state, ArrivalState::kIgnored);
  EXPECT_EQ(table.on_chunk(7, 0).state, ArrivalState::kIgnored);
  EXPECT_EQ(table.on_arrive(7, 3, 4).state, ArrivalState::kIgnored);
  EXPECT_EQ(table.on_whole(0, 5).state, ArrivalState::kCorrupt);
}

TEST(Arrival, AWholeOneCompletesWhatWasHeardOfItBefore) {
  ArrivalTable table;
  EXPECT_EQ(table.on_arrive(7, 2, 1).state, ArrivalState::kWaiting);
  const ArrivalResult whole = table.on_whole(7, 2);
  EXPECT_EQ(whole.state, ArrivalState::kComplete);
  EXPECT_EQ(whole.cookie, 1u);
  EXPECT_EQ(table.on_whole(7, 3).state, ArrivalState::kIgnored);
}

TEST(Arrival, DuplicatesAreIgnored) {
  ArrivalTable table;
  EXPECT_EQ(table.on_chunk(5, 0).state, State::kWaiting);
  EXPECT_EQ(table.on_chunk(5, 0).state, State::kIgnored);
  EXPECT_EQ(table.on_arrive(5, 2, 1).state, State::kWaiting);
  EXPECT_EQ(table.on_arrive(5, 2, 2).state, State::kIgnored);
  EXPECT_EQ(table.on_chunk(5, 1).state, State::kComplete);
  EXPECT_EQ(table.on_chunk(5, 1).state, State::kIgnored);
  EXPECT_EQ(table.on_arrive(5, 2, 3).state, State::kIgnored);
}

TEST(Arrival, ALaterArriveWithoutChunksCompletesWhatWaits) {
  ArrivalTable table;
  EXPECT_EQ(table.on_arrive(5, 3, 10).state, State::kWaiting);
  EXPECT_EQ(table.on_chunk(5, 1).state, State::kWaiting);
  const ArrivalResult result = table.on_arrive(5, 0, 11);
  EXPECT_EQ(result.state, State::kComplete);
  EXPECT_EQ(result.cookie, 10u);
  EXPECT_EQ(table.on_arrive(5, 0, 12).state, State::kIgnored);
  EXPECT_EQ(table.on_chunk(5, 2).state, State::kIgnored);
}

TEST(Arrival, CancelledTransfersExpectNothing) {
  ArrivalTable table;
  table.on_arrive(5, 100, 10);
  table.on_chunk(5, 99);
  EXPECT_EQ(table.cancel(5), 10u);
  EXPECT_EQ(table.bitmap_bytes(), 0u);
  EXPECT_FALSE(table.cancel(5));
  EXPECT_EQ(table.on_chunk(5, 0).state, State::kIgnored);
  EXPECT_EQ(table.on_arrive(5, 0, 11).state, State::kIgnored);
  EXPECT_FALSE(table.cancel(6));  // nothing came of it yet, and nothing will
  EXPECT_EQ(table.on_chunk(6, 0).state, State::kIgnored);
  EXPECT_EQ(table.on_arrive(6, 0, 12).state, State::kIgnored);
  EXPECT_EQ(table.on_arrive(7, 0, 13).state, State::kComplete);
  EXPECT_FALSE(table.cancel(7));
  EXPECT_FALSE(table.cancel(0));
}

TEST(Arrival, ContradictionsAreCorrupt) {
  ArrivalTable table;
  EXPECT_EQ(table.on_chunk(0, 0).state, State::kCorrupt);
  EXPECT_EQ(table.on_arrive(0, 1, 0).state, State::kCorrupt);
  EXPECT_EQ(table.on_chunk(1, wire::kChunksMax).state, State::kCorrupt);
  EXPECT_EQ(table.on_arrive(1, wire::kChunksMax + 1, 0).state, State::kCorrupt);
  EXPECT_EQ(table.on_chunk(2, 7).state, State::kWaiting);
  EXPECT_EQ(table.on_arrive(2, 7, 0).state, State::kCorrupt);  // chunk 7 means at least 8
  EXPECT_EQ(table.on_arrive(3, 4, 0).state, State::kWaiting);
  EXPECT_EQ(table.on_chunk(3, 4).state, State::kCorrupt);
}

TEST(Arrival, RetiredTransfersAreIgnored) {
  ArrivalTable table;
  EXPECT_EQ(table.on_arrive(5, 0, 1).state, State::kComplete);
  table.retire(6);
  table.retire(3);
  EXPECT_EQ(table.oldest(), 6u);
  EXPECT_EQ(table.on_chunk(5, 0).state, State::kIgnored);
  EXPECT_EQ(table.on_arrive(5, 1, 1).state, State::kIgnored);
  EXPECT_EQ(table.on_chunk(4, 0).state, State::kIgnored);  // never seen before
  EXPECT_EQ(table.on_arrive(4, 0, 0).state, State::kIgnored);
  EXPECT_EQ(table.on_chunk(6, 0).state, State::kWaiting);
}

TEST(Arrival, RetiringBeforeTheFirstCallWorks) {
  ArrivalTable table;
  table.retire(10);
  EXPECT_EQ(table.on_chunk(9, 0).state, State::kIgnored);
  EXPECT_EQ(table.on_arrive(10, 0, 0).state, State::kComplete);
}

TEST(Arrival, AChunkOnASlowerRailIsWaitedForAfterRetiring) {
  ArrivalTable table;
  EXPECT_EQ(table.on_arrive(5, 1, 77).state, State::kWaiting);
  table.retire(1000);
  for (std::uint64_t id = 1000; id < 2000; ++id) EXPECT_EQ(table.on_arrive(id, 0, 0).state, State::kComplete);
  const ArrivalResult last = table.on_chunk(5, 0);
  EXPECT_EQ(last.state, State::kComplete);
  EXPECT_EQ(last.cookie, 77u);
}

TEST(Arrival, MemoryStaysSmallWhenRetired) {
  ArrivalTable table;
  for (std::uint64_t id = 1; id < 100000; ++id) {
    ASSERT_EQ(table.on_chunk(id, 100).state, State::kWaiting);
    for (std::uint32_t chunk = 0; chunk < 100; chunk += 1) ASSERT_EQ(table.on_chunk(id, chunk).state, State::kWaiting);
    ASSERT_EQ(table.on_arrive(id, 101, id).cookie, id);
    table.retire(id);
    ASSERT_LE(table.count(), 64u);
    ASSERT_EQ(table.bitmap_bytes(), 0u);
    if (id == 2000) id = 99000;  // enough
  }
}

TEST(Arrival, TooManyAreCorrupt) {
  ArrivalTable table(100);
  std::uint64_t id = 1;
  while (id < 1000 && table.on_chunk(id, 0).state == State::kWaiting) ++id;
  EXPECT_GE(id, 100u);
  EXPECT_LE(id, 201u);
  table.retire(id);
  EXPECT_EQ(table.on_chunk(id, 0).state, State::kWaiting);
}

TEST(Arrival, BitmapsAreBounded) {
  ArrivalTable table(1000, 1 << 20);
  int big = 0;
  while (big < 100 &&
         table.on_chunk(static_cast<std::uint64_t>(big) + 1, wire::kChunksMax - 1).state == State::kWaiting)
    ++big;
  EXPECT_EQ(big, 8);  // of 128 KiB each
  EXPECT_LE(table.bitmap_bytes(), std::size_t{1} << 20);
  EXPECT_EQ(table.on_chunk(500, 63).state, State::kWaiting);
  table.clear([](std::uint64_t) {});
  EXPECT_EQ(table.bitmap_bytes(), 0u);
  EXPECT_EQ(table.count(), 0u);
}

TEST(Arrival, AMillionChunks) {
  ArrivalTable table;
  for (std::uint32_t i = wire::kChunksMax; i-- > 1;) ASSERT_EQ(table.on_chunk(3, i).state, State::kWaiting);
  EXPECT_EQ(table.on_arrive(3, wire::kChunksMax, 8).state, State::kWaiting);
  EXPECT_EQ(table.on_chunk(3, 0).state, State::kComplete);
}

TEST(Arrival, ClearHandsBackWhatWaits) {
  ArrivalTable table;
  table.on_arrive(1, 1, 11);
  table.on_arrive(2, 0, 22);
  table.on_chunk(3, 0);
  table.on_arrive(4, 2, 44);
  std::set<std::uint64_t> dropped;
  table.clear([&](std::uint64_t cookie) { dropped.insert(cookie); });
  EXPECT_EQ(dropped, (std::set<std::uint64_t>{11, 44}));
}

// Chunks and Arrives of many transfers in any order, each up to three times: each transfer completes exactly once.
TEST(Arrival, ExactlyOnceInAnyOrder) {
  struct Event {
    std::uint64_t transfer;
    std::uint32_t chunk;  // chunks_of(transfer): the Arrive
  };
  const auto chunks_of = [](std::uint64_t transfer) { return static_cast<std::uint32_t>(transfer * transfer % 200); };
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    base::Rng rng(seed);
    std::vector<Event> events;
    for (std::uint64_t transfer = 1; transfer <= 100; ++transfer) {
      for (std::uint32_t chunk = 0; chunk <= chunks_of(transfer); ++chunk) {
        for (std::uint64_t copies = 1 + rng.below(3); copies > 0; --copies) events.push_back({transfer * 1000, chunk});
      }
    }
    rng.shuffle(events);
    ArrivalTable table;
    std::vector<int> completed(101);
    for (const Event& event : events) {
      const std::uint32_t chunks = chunks_of(event.transfer / 1000);
      const ArrivalResult result = event.chunk == chunks ? table.on_arrive(event.transfer, chunks, event.transfer)
                                                         : table.on_chunk(event.transfer, event.chunk);
      ASSERT_NE(result.state, State::kCorrupt);
      if (result.state != State::kComplete) continue;
      EXPECT_EQ(result.cookie, event.transfer);
      ++completed[static_cast<std::size_t>(event.transfer / 1000)];
    }
    for (std::size_t i = 1; i <= 100; ++i) EXPECT_EQ(completed[i], 1) << i;
  }
}

}  // namespace
}  // namespace hawser::proto
