#include "runtime/relay_queue.h"

#include <gtest/gtest.h>

#include "runtime/relay_window.h"

namespace hawser::runtime {
namespace {

RelayItem frame(std::uint32_t source, std::uint32_t target, std::uint64_t sequence) {
  return {.message = {.source = source, .target = target, .sequence = sequence}, .body = nullptr};
}

RelayItem gone(std::uint32_t rank) { return {.message = {.kind = wire::RelayKind::kGone, .rank = rank}, .body = {}}; }

TEST(RelayQueue, WordsGoFirstAndFramesInTheirOrder) {
  RelayQueue queue;
  EXPECT_EQ(queue.front(), nullptr);
  ASSERT_TRUE(queue.push_frame(frame(1, 2, 7), 1));
  ASSERT_TRUE(queue.push_frame(frame(1, 2, 8), 1));
  queue.push_word(gone(5));
  EXPECT_EQ(queue.size(), 3U);
  EXPECT_EQ(queue.front()->message.rank, 5U);
  queue.pop();
  EXPECT_EQ(queue.front()->message.sequence, 7U);
  queue.pop();
  EXPECT_EQ(queue.front()->message.sequence, 8U);
  queue.pop();
  EXPECT_EQ(queue.front(), nullptr);
}

TEST(RelayQueue, FramesOfAPairAreBounded) {
  RelayQueue queue;
  std::uint64_t taken = 0;
  while (queue.push_frame(frame(1, 2, taken), 1)) ++taken;
  EXPECT_EQ(taken, 2 * kWindowPieces);
  EXPECT_TRUE(queue.push_frame(frame(2, 1, 0), 1)) << "of another pair";
  EXPECT_TRUE(queue.push_frame(frame(1, 2, 0), 2)) << "the ways have changed once";
  queue.pop();
  queue.pop();
  EXPECT_TRUE(queue.push_frame(frame(1, 2, 0), 1));
  queue.push_word(gone(5));
  queue.drop_frames();
  EXPECT_EQ(queue.size(), 1U) << "the word";
  EXPECT_TRUE(queue.push_frame(frame(1, 2, 0), 1));
}

}  // namespace
}  // namespace hawser::runtime
