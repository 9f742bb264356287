#include "backend/quic/byte_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace hawser::backend::quic {
namespace {

std::vector<std::byte> pattern(std::size_t size, std::size_t from = 0) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((from + i) * 31 >> 3);
  return bytes;
}

TEST(ByteQueue, GivesBackWhatCameInOrderAcrossChunks) {
  ChunkPool pool;
  ByteQueue queue(pool);
  const std::vector<std::byte> in = pattern(3 * ByteQueue::kChunk + 7);
  queue.append(std::span(in).first(5));
  queue.append(std::span(in).subspan(5));
  std::vector<std::byte> out(in.size());
  const std::array<iovec, 2> parts = {iovec{out.data(), ByteQueue::kChunk - 1},
                                      iovec{out.data() + ByteQueue::kChunk - 1, out.size() - ByteQueue::kChunk + 1}};
  EXPECT_EQ(queue.take(parts), in.size());
  EXPECT_EQ(out, in);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.take(parts), 0u);
}

TEST(ByteQueue, BytesStayWhereTheyAreWhileOthersComeAndGo) {
  ChunkPool pool;
  ByteQueue queue(pool);
  const std::vector<std::byte> in = pattern(2 * ByteQueue::kChunk);
  queue.append(in);
  const std::byte* const second = queue.from(ByteQueue::kChunk).data();
  queue.append(in);
  queue.drop(ByteQueue::kChunk - 1);
  EXPECT_EQ(queue.from(1).data(), second);
  EXPECT_EQ(std::memcmp(second, in.data() + ByteQueue::kChunk, ByteQueue::kChunk), 0);
}

TEST(ByteQueue, TakesAsManyAsItIsToldTo) {
  ChunkPool pool;
  ByteQueue queue(pool);
  std::vector<std::byte> in = pattern(100);
  const std::array<iovec, 3> parts = {iovec{in.data(), 40}, iovec{in.data() + 40, 0}, iovec{in.data() + 40, 60}};
  EXPECT_EQ(queue.append(parts, 41), 41u);
  EXPECT_EQ(queue.size(), 41u);
  EXPECT_EQ(queue.append(parts, 0), 0u);
  EXPECT_EQ(queue.append(parts, 1000), 100u);
  EXPECT_EQ(queue.from(141).size(), 0u);
  EXPECT_EQ(queue.from(140).size(), 1u);
}

TEST(ByteQueue, AChunkThatIsUsedUpIsUsedAgain) {
  ChunkPool pool;
  ByteQueue queue(pool);
  const std::vector<std::byte> in = pattern(ByteQueue::kChunk);
  for (int round = 0; round < 100; ++round) {
    queue.append(in);
    ASSERT_EQ(queue.from(0).size(), ByteQueue::kChunk);
    ASSERT_EQ(std::memcmp(queue.from(0).data(), in.data(), in.size()), 0);
    queue.drop(ByteQueue::kChunk);
    ASSERT_TRUE(queue.empty());
    ASSERT_EQ(pool.kept(), 1u);
  }
}

TEST(ChunkPool, TheLastOneIsGivenFirstAndNoMoreThanSoManyAreKept) {
  ChunkPool pool;
  std::vector<ChunkPool::Chunk> taken;
  for (std::size_t i = 0; i < ChunkPool::kKeptMax + 5; ++i) taken.push_back(pool.take());
  const std::byte* const last = taken[3].get();
  pool.give(std::move(taken[2]));
  pool.give(std::move(taken[3]));
  EXPECT_EQ(pool.take().get(), last);
  for (ChunkPool::Chunk& chunk : taken) {
    if (chunk != nullptr) pool.give(std::move(chunk));
  }
  EXPECT_EQ(pool.kept(), ChunkPool::kKeptMax);
}

TEST(ChunkPool, QueuesShareItAndGiveAllBackAtTheirEnd) {
  ChunkPool pool;
  {
    ByteQueue one(pool), other(pool);
    one.append(pattern(2 * ByteQueue::kChunk));
    one.clear();
    EXPECT_EQ(pool.kept(), 2u);
    other.append(pattern(ByteQueue::kChunk + 1));
    EXPECT_EQ(pool.kept(), 0u);
  }
  EXPECT_EQ(pool.kept(), 2u);
}

}  // namespace
}  // namespace hawser::backend::quic
