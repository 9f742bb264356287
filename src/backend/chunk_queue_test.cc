#include "backend/chunk_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace hawser::backend {
namespace {

/// The queue never looks into a path.
Path& fake_path(std::uintptr_t number) { return *reinterpret_cast<Path*>(number * 64); }

Job& add(ChunkQueue& queue, std::uintptr_t path, std::uint64_t transfer, std::uint64_t cookie,
         Priority priority = Priority::kBulk) {
  Chunk chunk;
  chunk.transfer = transfer;
  chunk.cookie = cookie;
  chunk.priority = priority;
  chunk.bytes = 10;
  Job* job = queue.make(fake_path(path), chunk);
  queue.schedule(*job);
  return *job;
}

/// Works on one job at a time, to its end.
std::vector<std::uint64_t> drain(ChunkQueue& queue) {
  std::vector<std::uint64_t> cookies;
  while (Job* job = queue.front()) {
    cookies.push_back(job->chunk.cookie);
    queue.rotate(*job);
    queue.erase(*job);
  }
  EXPECT_TRUE(queue.empty());
  return cookies;
}

TEST(ChunkQueue, TransfersTakeTurns) {
  ChunkQueue queue;
  for (std::uint64_t i = 0; i < 3; ++i) add(queue, 1, 1, 10 + i);
  add(queue, 1, 2, 20);
  add(queue, 2, 1, 30);
  EXPECT_EQ(drain(queue), (std::vector<std::uint64_t>{10, 20, 30, 11, 12}));
}

TEST(ChunkQueue, HigherClassesGoFirst) {
  ChunkQueue queue;
  add(queue, 1, 1, 1);
  add(queue, 1, 2, 2, Priority::kRealtime);
  add(queue, 1, 3, 3, Priority::kCritical);
  EXPECT_EQ(drain(queue), (std::vector<std::uint64_t>{3, 2, 1}));
}

TEST(ChunkQueue, KnowsTheBytesOfATransfer) {
  ChunkQueue queue;
  Job& first = add(queue, 1, 1, 1);
  add(queue, 1, 1, 2);
  add(queue, 1, 2, 3);
  EXPECT_EQ(queue.transfer_bytes(first), 20u);
  drain(queue);
}

TEST(ChunkQueue, AJobThatWaitsElsewhereLeavesTheFlowAlone) {
  ChunkQueue queue;
  base::IntrusiveList<Job, &Job::hook> waiting;
  add(queue, 1, 1, 1);
  Chunk chunk;
  chunk.transfer = 1;
  Job* waits = queue.make(fake_path(1), chunk);
  waiting.push_back(*waits);
  const base::SlotId id = waits->id;
  queue.erase(*waits);
  EXPECT_EQ(queue.get(id), nullptr);
  EXPECT_TRUE(waiting.empty());
  EXPECT_EQ(drain(queue), (std::vector<std::uint64_t>{1}));
}

TEST(ChunkQueue, IsBounded) {
  ChunkQueue queue;
  for (std::uint64_t i = 0; i < ChunkQueue::kJobsMax; ++i) add(queue, 1, i, i);
  EXPECT_EQ(queue.make(fake_path(1), {}), nullptr);
  std::size_t count = 0;
  queue.for_each([&](Job& job) {
    queue.erase(job);
    ++count;
  });
  EXPECT_EQ(count, ChunkQueue::kJobsMax);
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace hawser::backend
