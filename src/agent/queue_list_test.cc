#include "agent/queue_list.h"

#include <gtest/gtest.h>

#include <array>

namespace hawser::agent {
namespace {

std::shared_ptr<QueueCore> make_queue() { return *QueueCore::make({}, 4); }

std::size_t taken_from(QueueCore& queue) {
  std::array<Completion, 8> out;
  return queue.poll(out);
}

TEST(QueueList, AHintReachesEachQueue) {
  QueueList list;
  list.hint(CompletionKind::kPeer, 0);  // Nobody hears it.
  const auto one = make_queue(), two = make_queue();
  list.add(one);
  list.add(two);
  EXPECT_EQ(taken_from(*one), 0u);
  list.hint(CompletionKind::kMessage, 17);
  for (const auto& queue : {one, two}) {
    std::array<Completion, 8> out;
    ASSERT_EQ(queue->poll(out), 1u);
    EXPECT_EQ(out[0].kind, CompletionKind::kMessage);
    EXPECT_EQ(out[0].cookie, 17u);
  }
}

TEST(QueueList, AQueueThatIsGoneIsNotKept) {
  QueueList list;
  auto one = make_queue();
  const std::weak_ptr<QueueCore> watched = one;
  list.add(one);
  one.reset();
  EXPECT_TRUE(watched.expired());
  list.hint(CompletionKind::kPeer, 0);
  const auto two = make_queue();
  list.add(two);
  list.hint(CompletionKind::kPeer, 0);
  EXPECT_EQ(taken_from(*two), 1u);
}

}  // namespace
}  // namespace hawser::agent
