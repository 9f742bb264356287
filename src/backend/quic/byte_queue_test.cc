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
  ByteQueue queue;
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
  ByteQueue queue;
  const std::vector<std::byte> in = pattern(2 * ByteQueue::kChunk);
  queue.append(in);
  const std::byte* const second = queue.from(ByteQueue::kChunk).data();
  queue.append(in);
  queue.drop(ByteQueue::kChunk - 1);
  EXPECT_EQ(queue.from(1).data(), second);
  EXPECT_EQ(std::memcmp(second, in.data() + ByteQueue::kChunk, ByteQueue::kChunk), 0);
}

TEST(ByteQueue, TakesAsManyAsItIsToldTo) {
  ByteQueue queue;
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
  ByteQueue queue;
  const std::vector<std::byte> in = pattern(ByteQueue::kChunk);
  for (int round = 0; round < 100; ++round) {
    queue.append(in);
    ASSERT_EQ(queue.from(0).size(), ByteQueue::kChunk);
    ASSERT_EQ(std::memcmp(queue.from(0).data(), in.data(), in.size()), 0);
    queue.drop(ByteQueue::kChunk);
    ASSERT_TRUE(queue.empty());
  }
}

}  // namespace
}  // namespace hawser::backend::quic
