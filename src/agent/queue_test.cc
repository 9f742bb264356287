#include "agent/queue.h"

#include <poll.h>

#include <array>
#include <atomic>
#include <set>
#include <span>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "base/spin.h"

namespace hawser::agent {
namespace {

std::shared_ptr<QueueCore> make(std::size_t capacity) {
  Result<std::shared_ptr<QueueCore>> queue = QueueCore::make({}, capacity);
  EXPECT_TRUE(queue) << queue.error().to_string();
  return *queue;
}

bool readable(int fd) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, 0) == 1;
}

TEST(Queue, RefusesACapacityOutOfBounds) {
  EXPECT_EQ(QueueCore::make({}, 0).error().code(), Code::kInvalid);
  EXPECT_NE(QueueCore::make({}, 1u << 21).error().message().find("2097152"), std::string_view::npos);
}

TEST(Queue, GivesBackWhatWasPushedInOrder) {
  const auto queue = make(4);
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(queue->reserve());
    queue->push({.kind = CompletionKind::kTransfer, .cookie = i, .bytes = 10 * i, .status = {}});
  }
  std::array<Completion, 8> out;
  ASSERT_EQ(queue->poll(out), 4u);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(out[i].cookie, i);
  EXPECT_EQ(queue->poll(out), 0u);
}

TEST(Queue, IsBoundedByReservationsAndOwesRoomToWhoWasRefused) {
  const auto queue = make(2);
  EXPECT_TRUE(queue->reserve());
  EXPECT_TRUE(queue->reserve());
  EXPECT_FALSE(queue->reserve());
  queue->push({.kind = CompletionKind::kTransfer, .cookie = 1, .bytes = 0, .status = {}});
  std::array<Completion, 8> out;
  ASSERT_EQ(queue->poll(out), 1u);
  EXPECT_TRUE(queue->reserve());
  ASSERT_EQ(queue->poll(out), 1u);
  EXPECT_EQ(out[0].kind, CompletionKind::kRoom);
}

TEST(Queue, HintsMergeAndNeverTakeAPlaceOfTransfers) {
  const auto queue = make(1);
  for (int i = 0; i < 10; ++i) queue->hint(CompletionKind::kNotification, 0);
  for (std::uint64_t channel = 16; channel < 200; ++channel) queue->hint(CompletionKind::kMessage, channel);
  ASSERT_TRUE(queue->reserve());
  queue->push({.kind = CompletionKind::kTransfer, .cookie = 7, .bytes = 0, .status = {}});
  std::array<Completion, 256> out;
  const std::size_t count = queue->poll(out);
  ASSERT_EQ(count, 186u);  // 185 hints and the transfer
  EXPECT_EQ(out[0].kind, CompletionKind::kNotification);
  EXPECT_EQ(out[64].cookie, 7u);
  queue->hint(CompletionKind::kNotification, 0);  // Taken ones may come again.
  EXPECT_EQ(queue->poll(out), 1u);
}

TEST(Queue, APlaceThatIsGivenBackIsRoomForWhoWasRefused) {
  const auto queue = make(1);
  EXPECT_TRUE(queue->reserve());
  EXPECT_FALSE(queue->reserve());
  queue->unreserve();  // What it was for was refused for another reason: no entry follows.
  std::array<Completion, 8> out;
  ASSERT_EQ(queue->poll(out), 1u);
  EXPECT_EQ(out[0].kind, CompletionKind::kRoom);
  EXPECT_TRUE(queue->reserve());
}

TEST(Queue, NoHintIsLostToThoseThatWait) {
  const auto queue = make(1);
  constexpr std::uint64_t kFirst = 16, kLast = 215;
  for (std::uint64_t channel = kFirst; channel <= kLast; ++channel) queue->hint(CompletionKind::kMessage, channel);
  ASSERT_TRUE(queue->reserve());
  EXPECT_FALSE(queue->reserve());
  queue->push({.kind = CompletionKind::kTransfer, .cookie = 7, .bytes = 0, .status = {}});
  for (const CompletionKind kind : {CompletionKind::kNotification, CompletionKind::kPeer}) queue->hint(kind, 0);
  std::set<std::pair<CompletionKind, std::uint64_t>> seen;
  std::array<Completion, 50> out;
  while (const std::size_t count = queue->poll(out)) {
    for (const Completion& entry : std::span(out).first(count)) {
      EXPECT_TRUE(seen.emplace(entry.kind, entry.cookie).second) << entry.cookie << " is told once";
    }
  }
  for (std::uint64_t channel = kFirst; channel <= kLast; ++channel) {
    EXPECT_TRUE(seen.contains({CompletionKind::kMessage, channel})) << channel;
  }
  for (const CompletionKind kind : {CompletionKind::kNotification, CompletionKind::kPeer, CompletionKind::kRoom}) {
    EXPECT_TRUE(seen.contains({kind, 0})) << static_cast<int>(kind);
  }
}

TEST(Queue, EventDescriptorFollowsTheEntries) {
  const auto queue = make(2);
  queue->hint(CompletionKind::kPeer, 0);
  const int fd = queue->event_fd();  // Asked for after the entry came.
  EXPECT_TRUE(readable(fd));
  std::array<Completion, 2> out;
  EXPECT_EQ(queue->poll(out), 1u);
  EXPECT_FALSE(readable(fd));
  ASSERT_TRUE(queue->reserve());
  queue->push({.kind = CompletionKind::kTransfer, .cookie = 0, .bytes = 0, .status = {}});
  EXPECT_TRUE(readable(fd));
}

/// A loop that is woken for nothing would be woken for ever: what empties the descriptor is taking an entry.
TEST(Queue, EventDescriptorIsNotReadableWithoutEntriesWhoeverPushesMeanwhile) {
  const auto queue = make(1);
  const int fd = queue->event_fd();
  constexpr int kRounds = 3000;
  std::atomic<int> begun = 0, pushed = 0;
  std::thread pushing([&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (begun.load() < round) std::this_thread::yield();
      queue->push({.kind = CompletionKind::kTransfer, .cookie = 0, .bytes = 0, .status = {}});
      pushed = round;
    }
  });
  int woken_for_nothing = 0;
  std::array<Completion, 2> out;
  for (int round = 1; round <= kRounds; ++round) {
    EXPECT_TRUE(queue->reserve());
    begun = round;
    while (queue->poll(out) == 0) base::cpu_relax();
    while (pushed.load() < round) std::this_thread::yield();
    woken_for_nothing += readable(fd) ? 1 : 0;
    static_cast<void>(queue->poll(out));
  }
  pushing.join();
  EXPECT_EQ(woken_for_nothing, 0);
}

}  // namespace
}  // namespace hawser::agent
