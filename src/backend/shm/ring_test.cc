#include "backend/shm/ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"

namespace hawser::backend::shm {
namespace {

/// Both ends on one mapping, where a race detector sees them.
struct Shared {
  explicit Shared(std::size_t line_count) : lines(new RingLine<Atomics>[line_count]), count(line_count) {}
  RingLines<Atomics> view() { return {lines.get(), count}; }
  RingProducer<Atomics> producer() { return {view(), &producer_side, &consumer_side}; }
  RingConsumer<Atomics> consumer() { return {view(), &consumer_side, &producer_side}; }

  std::unique_ptr<RingLine<Atomics>[]> lines;
  std::size_t count;
  RingSide<Atomics> producer_side;
  RingSide<Atomics> consumer_side;
};

std::vector<std::byte> message(std::uint64_t number, std::size_t size) {
  std::vector<std::byte> bytes(size);
  base::Rng rng(number);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.u64());
  return bytes;
}

TEST(Ring, SmallMessageIsOneLine) {
  EXPECT_EQ(ring::lines_for(0), 1u);
  EXPECT_EQ(ring::lines_for(56), 1u);
  EXPECT_EQ(ring::lines_for(57), 2u);
  EXPECT_EQ(ring::record_max(8), 2u * 56);
}

TEST(Ring, RoomForOneWhoLooksIsAQuarterAndTheRecord) {
  Shared shared(64);
  auto producer = shared.producer();
  auto consumer = shared.consumer();
  const auto one = message(1, 8);
  while (producer.put(RecordKind::kMessage, {}, one) == Put::kDone) continue;
  const auto read = [&](int count) {
    Record record;
    std::byte out[8];
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(consumer.next(&record), Got::kRecord);
      consumer.take(record, out);
    }
    static_cast<void>(consumer.give_back());
  };
  EXPECT_FALSE(producer.has_room(8));
  read(15);
  EXPECT_FALSE(producer.has_room(8)) << "15 of 64 lines";
  read(1);
  EXPECT_TRUE(producer.has_room(8)) << "a quarter";
  EXPECT_TRUE(producer.has_room(producer.record_max())) << "a record is no larger than that";
}

TEST(Ring, RunHasOneHeader) {
  EXPECT_EQ(ring::lines_for(511), 10u);
  EXPECT_EQ(ring::lines_for(512), 9u);
  EXPECT_EQ(ring::lines_for(9 * 64 - 8), 9u);
  EXPECT_EQ(ring::record_max(64), 16u * 64 - 8);
}

TEST(Ring, EverySizeAndSplitArrives) {
  Shared shared(64);
  auto producer = shared.producer();
  auto consumer = shared.consumer();
  for (std::size_t size = 0; size <= producer.record_max(); ++size) {
    const auto sent = message(size, size);
    const std::span<const std::byte> bytes(sent);
    const std::size_t head = size == 0 ? 0 : (size * 7) % size;
    ASSERT_EQ(producer.put(RecordKind::kMessage, bytes.first(head), bytes.subspan(head)), Put::kDone);
    Record record;
    ASSERT_EQ(consumer.next(&record), Got::kRecord);
    ASSERT_EQ(record.size, size);
    std::vector<std::byte> got(size);
    consumer.take(record, got.data());
    consumer.give_back();
    ASSERT_EQ(got, sent);
    ASSERT_EQ(consumer.next(&record), Got::kNone);
  }
}

// Bytes of a run lie where a later lap looks for headers: they must never be taken for one.
TEST(Ring, BytesThatLookLikeHeadersAreNoRecords) {
  Shared shared(64);
  auto producer = shared.producer();
  auto consumer = shared.consumer();
  base::Rng rng(3);
  std::uint64_t position = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::uint64_t size = rng.chance(0.5) ? 512 + rng.below(400) : rng.below(512);
    std::vector<std::byte> sent(size);
    for (std::size_t at = 0; at + 8 <= size; at += 8) {  // as a record of the next lap would begin
      const std::uint64_t fake = ring::header(shared.view().lap(position) + 1, 8, 1);
      std::memcpy(sent.data() + at, &fake, 8);
    }
    ASSERT_EQ(producer.put(RecordKind::kMessage, sent, {}), Put::kDone);
    Record record;
    ASSERT_EQ(consumer.next(&record), Got::kRecord);
    ASSERT_EQ(record.size, size) << round;
    std::vector<std::byte> got(size);
    consumer.take(record, got.data());
    consumer.give_back();
    ASSERT_EQ(got, sent);
    ASSERT_EQ(consumer.next(&record), Got::kNone) << "round " << round << " left something like a record";
    position += ring::lines_for(size);
  }
}

TEST(Ring, FullIsSaidAndRoomIsAsked) {
  Shared shared(8);
  auto producer = shared.producer();
  auto consumer = shared.consumer();
  const auto small = message(1, 8);
  for (int i = 0; i < 8; ++i) ASSERT_EQ(producer.put(RecordKind::kMessage, small, {}), Put::kDone);
  EXPECT_EQ(producer.put(RecordKind::kMessage, small, {}), Put::kFull);
  EXPECT_TRUE(producer.await_room(8));
  Record record;
  std::byte out[8];
  int rings = 0;
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(consumer.next(&record), Got::kRecord);
    consumer.take(record, out);
    rings += consumer.give_back() ? 1 : 0;
  }
  EXPECT_EQ(rings, 1);
  EXPECT_FALSE(producer.await_room(8));
  EXPECT_EQ(producer.put(RecordKind::kMessage, small, {}), Put::kDone);
}

TEST(Ring, AHostileTailIsNoticed) {
  Shared shared(8);
  auto producer = shared.producer();
  const auto small = message(1, 8);
  for (int i = 0; i < 8; ++i) ASSERT_EQ(producer.put(RecordKind::kMessage, small, {}), Put::kDone);
  shared.consumer_side.tail.store(9);
  EXPECT_EQ(producer.put(RecordKind::kMessage, small, {}), Put::kCorrupt);
  shared.consumer_side.tail.store(UINT64_MAX);
  EXPECT_EQ(producer.put(RecordKind::kMessage, small, {}), Put::kCorrupt);
}

TEST(Ring, WhatWasNotGivenBackIsShown) {
  Shared shared(64);
  std::vector<std::vector<std::byte>> sent;
  auto producer = shared.producer();
  auto consumer = shared.consumer();
  const auto shown = [&] {
    std::vector<std::vector<std::byte>> all;
    EXPECT_TRUE(producer.each_unread([&](const Record& record, std::uint64_t position) {
      if (record.kind != RecordKind::kMessage) return;
      std::array<std::byte, kLinePayload> begin;
      const auto read = producer.read_begin(record, position, begin);
      all.emplace_back(read.begin(), read.end());
      std::vector<std::byte> whole(record.size);
      producer.read(record, position, whole.data());
      EXPECT_TRUE(std::ranges::find(sent, whole) != sent.end());
    }));
    return all;
  };
  EXPECT_TRUE(shown().empty());
  for (std::uint64_t round = 0; round < 50; ++round) {  // Around the ring, runs and small ones.
    const auto large = message(2 * round, 700), small = message(2 * round + 1, 24);
    sent = {large, small};
    ASSERT_EQ(producer.put(RecordKind::kMessage, std::span(large).first(3), std::span(large).subspan(3)), Put::kDone);
    ASSERT_EQ(producer.put(RecordKind::kMessage, small, {}), Put::kDone);
    ASSERT_EQ(producer.put(RecordKind::kFragment, small, {}), Put::kDone) << "no whole message";
    const std::vector<std::byte> begin(large.begin(), large.begin() + kLinePayload);
    EXPECT_EQ(shown(), (std::vector<std::vector<std::byte>>{begin, small}));
    Record record;
    std::vector<std::byte> got(1024);
    ASSERT_EQ(consumer.next(&record), Got::kRecord);
    consumer.take(record, got.data());
    EXPECT_EQ(shown().size(), 2u) << "copied is not given back";
    EXPECT_TRUE(consumer.holds_taken());
    consumer.give_back();
    EXPECT_FALSE(consumer.holds_taken());
    EXPECT_EQ(shown(), (std::vector<std::vector<std::byte>>{small}));
    for (int i = 0; i < 2 && consumer.next(&record) == Got::kRecord; ++i) consumer.take(record, got.data());
    consumer.give_back();
    EXPECT_TRUE(shown().empty());
    EXPECT_TRUE(producer.is_drained());
  }
}

TEST(Ring, AHostileConsumerHidesThatAnyMessageWasTaken) {
  Shared shared(8);
  auto producer = shared.producer();
  const auto small = message(1, 8);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(producer.put(RecordKind::kMessage, small, {}), Put::kDone);
  const auto is_known = [&] { return producer.each_unread([](const Record&, std::uint64_t) {}); };
  EXPECT_TRUE(is_known());
  shared.consumer_side.tail.store(5);
  EXPECT_FALSE(is_known()) << "more than was written";
  shared.consumer_side.tail.store(0);
  shared.lines[2].words[0].store(ring::header(7, 8, 1));
  EXPECT_FALSE(is_known()) << "another lap";
  shared.lines[2].words[0].store(ring::header(1, 4096, 1));
  EXPECT_FALSE(is_known()) << "larger than any";
  shared.lines[2].words[0].store(ring::header(1, 200, 1));
  EXPECT_FALSE(is_known()) << "beyond what was written";
  shared.lines[2].words[0].store(ring::header(1, 8, 9));
  EXPECT_FALSE(is_known()) << "of no kind";
}

TEST(Ring, GarbageNeverReachesBeyondABuffer) {
  base::Rng rng(5);
  for (int round = 0; round < 20000; ++round) {
    Shared shared(8);
    for (std::size_t i = 0; i < shared.count; ++i) {
      for (auto& word : shared.lines[i].words) {
        // Often nearly right: the expected lap, a plausible kind.
        word.store(rng.chance(0.5) ? rng.u64() : ring::header(1, static_cast<std::uint32_t>(rng.below(200)), 1));
      }
    }
    auto consumer = shared.consumer();
    Record record;
    for (int i = 0; i < 20 && consumer.next(&record) == Got::kRecord; ++i) {
      ASSERT_LE(record.size, ring::record_max(shared.count));
      std::vector<std::byte> got(record.size);
      consumer.take(record, got.data());
    }
  }
}

TEST(Ring, TwoThreads) {
  Shared shared(64);
  constexpr std::uint64_t kCount = 20000;
  const auto size_of = [&](std::uint64_t number) { return static_cast<std::size_t>(number * 37 % 800); };
  std::thread sender([&] {
    auto producer = shared.producer();
    for (std::uint64_t i = 0; i < kCount; ++i) {
      const auto bytes = message(i, size_of(i));
      while (producer.put(RecordKind::kMessage, bytes, {}) == Put::kFull) {
        producer.await_room(static_cast<std::uint32_t>(bytes.size()));
        std::this_thread::yield();
      }
      producer.must_ring();
    }
  });
  auto consumer = shared.consumer();
  for (std::uint64_t i = 0; i < kCount; ++i) {
    Record record;
    while (consumer.next(&record) == Got::kNone) {
      if (consumer.arm()) consumer.disarm();
      std::this_thread::yield();
    }
    std::vector<std::byte> got(record.size);
    consumer.take(record, got.data());
    if (i % 4 == 3 || !consumer.ready()) consumer.give_back();
    ASSERT_EQ(got, message(i, size_of(i))) << i;
  }
  sender.join();
}

}  // namespace
}  // namespace hawser::backend::shm
