#include "fileio/mover.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>

#include "base/events.h"
#include "base/test_folder.h"
#include "fileio/fake_queue.h"

namespace hawser::fileio {
namespace {

class MoverTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kDepth = 4;

  MoverTest() {
    auto queue = std::make_unique<FakeQueue>(kDepth);
    disk_ = queue.get();
    mover_ = std::make_unique<Mover>(std::move(queue), kDepth);
    file_ = File::open({.path = folder_.path("file"), .create = true, .direct = DirectIo::kOff}).value();
    for (std::size_t i = 0; i < disk_bytes_.size(); ++i) disk_bytes_[i] = static_cast<std::byte>(i * 7 + i / 251);
  }

  base::SlotId take(Request request, std::vector<backend::Piece> pieces) {
    request.file = file_;
    kept_.push_back(std::move(pieces));
    request.pieces = kept_.back();
    return mover_->take(request);
  }
  std::vector<Moved> poll() {
    std::vector<Moved> moved(16);
    moved.resize(mover_->poll(moved));
    return moved;
  }
  /// Ends operations as they come until nothing is started any more.
  void run(std::uint64_t most = UINT64_MAX) {
    for (int i = 0; i < 10'000 && (mover_->turn(UINT64_MAX) > 0 || !disk_->started.empty()); ++i) {
      if (!disk_->started.empty()) disk_->end(most);
    }
  }

  FakeQueue* disk_ = nullptr;
  std::unique_ptr<Mover> mover_;
  const base::TestFolder folder_{"hawser-mover"};
  std::shared_ptr<File> file_;
  std::deque<std::vector<backend::Piece>> kept_;
  std::vector<std::byte> disk_bytes_ = std::vector<std::byte>(100'000);
  std::vector<std::byte> memory_ = std::vector<std::byte>(100'000);
};

TEST_F(MoverTest, PiecesGoWhereTheyBelong) {
  disk_->disk = disk_bytes_;
  take({.cookie = 7}, {{memory_.data(), 10, 100}, {memory_.data() + 200, 5000, 300}});
  run();
  const auto moved = poll();
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_TRUE(moved[0].status.ok());
  EXPECT_EQ(moved[0].cookie, 7u);
  EXPECT_EQ(moved[0].bytes, 400u);
  EXPECT_EQ(std::memcmp(memory_.data(), disk_bytes_.data() + 10, 100), 0);
  EXPECT_EQ(std::memcmp(memory_.data() + 200, disk_bytes_.data() + 5000, 300), 0);
  EXPECT_TRUE(mover_->idle());
}

TEST_F(MoverTest, ShortReadsAndWritesAreFinished) {
  disk_->disk = disk_bytes_;
  take({.cookie = 1}, {{memory_.data(), 0, 50'000}});
  run(999);
  EXPECT_TRUE(poll().at(0).status.ok());
  EXPECT_EQ(std::memcmp(memory_.data(), disk_bytes_.data(), 50'000), 0);
  EXPECT_EQ(mover_->counters().short_results, 50u);

  disk_->disk.clear();
  take({.op = hawser::Operation::kWrite, .cookie = 2}, {{disk_bytes_.data(), 0, 50'000}});
  run(999);
  EXPECT_TRUE(poll().at(0).status.ok());
  EXPECT_EQ(std::memcmp(disk_->disk.data(), disk_bytes_.data(), 50'000), 0);
}

TEST_F(MoverTest, ReadingBeyondTheEndNamesIt) {
  disk_->disk.assign(1000, std::byte{1});
  take({.cookie = 1}, {{memory_.data(), 500, 1000}});
  run();
  const Moved moved = poll().at(0);
  EXPECT_EQ(moved.status.code(), Code::kFailed);
  EXPECT_NE(moved.status.message().find("byte 1000"), std::string::npos) << moved.status.to_string();
  EXPECT_EQ(moved.bytes, 500u);
}

TEST_F(MoverTest, TheDepthIsNeverExceededAndAllIsDone) {
  disk_->disk = disk_bytes_;
  std::vector<backend::Piece> pieces;
  for (std::size_t i = 0; i < 50; ++i) pieces.push_back({memory_.data() + i * 1000, (49 - i) * 1000, 1000});
  take({.cookie = 1}, pieces);
  mover_->turn(UINT64_MAX);
  EXPECT_EQ(disk_->started.size(), kDepth);
  EXPECT_TRUE(mover_->can_sleep());
  run();
  EXPECT_TRUE(poll().at(0).status.ok());
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(std::memcmp(memory_.data() + i * 1000, disk_bytes_.data() + (49 - i) * 1000, 1000), 0);
  }
}

TEST_F(MoverTest, ATurnIsBoundedInWhatTheKernelMayCopyAtOnce) {
  disk_->disk = disk_bytes_;
  take({.cookie = 1}, {{memory_.data(), 0, 1000}, {memory_.data(), 2000, 1000}});
  mover_->turn(500);
  EXPECT_EQ(disk_->started.size(), 1u);
  EXPECT_FALSE(mover_->can_sleep());
}

TEST_F(MoverTest, WhatTheKernelGaveUpIsTriedAgain) {
  disk_->disk = disk_bytes_;
  for (const int error : {EINTR, EAGAIN, ECANCELED}) {
    take({.cookie = 1}, {{memory_.data(), 0, 1000}});
    mover_->turn(UINT64_MAX);
    disk_->end(0, error);
    run();
    EXPECT_TRUE(poll().at(0).status.ok()) << error;
  }
}

TEST_F(MoverTest, ErrorsEndTheRequestOnceAndCancelTheRest) {
  take({.op = hawser::Operation::kWrite, .cookie = 5}, {{memory_.data(), 0, 10}, {memory_.data(), 100, 10}});
  mover_->turn(UINT64_MAX);
  ASSERT_EQ(disk_->started.size(), 2u);
  disk_->end(0, ENOSPC);
  mover_->turn(UINT64_MAX);
  EXPECT_TRUE(poll().empty());  // The second is still in flight.
  EXPECT_FALSE(disk_->cancelled.empty());
  disk_->end(0, ECANCELED);
  mover_->turn(UINT64_MAX);
  const Moved moved = poll().at(0);
  EXPECT_EQ(moved.status.code(), Code::kBusy);
  EXPECT_NE(moved.status.advice().find("free space"), std::string::npos);
  EXPECT_EQ(moved.status.buffer(), BufferState::kUntouched);
  EXPECT_TRUE(mover_->idle());
}

TEST_F(MoverTest, StoppedIsOverOnlyWhenNothingIsInFlight) {
  const base::SlotId task = take({.cookie = 1}, {{memory_.data(), 0, 10}, {memory_.data(), 100, 10}});
  mover_->turn(UINT64_MAX);
  mover_->stop(task, Status(Code::kCancelled, "by the test"));
  EXPECT_TRUE(poll().empty());
  disk_->end(0, ECANCELED);
  mover_->turn(UINT64_MAX);
  EXPECT_TRUE(poll().empty());
  disk_->end(0, ECANCELED);
  mover_->turn(UINT64_MAX);
  EXPECT_EQ(poll().at(0).status.code(), Code::kCancelled);
  mover_->stop(task, Status(Code::kCancelled, "again"));  // Stale: nothing.
}

TEST_F(MoverTest, StoppedBeforeItBeganIsOverAtOnce) {
  const base::SlotId task = take({.cookie = 1}, {{memory_.data(), 0, 10}});
  mover_->stop(task, Status(Code::kCancelled, "by the test"));
  EXPECT_EQ(poll().at(0).status.buffer(), BufferState::kUntouched);
}

TEST_F(MoverTest, OneSyncServesAllThatWait) {
  for (std::uint64_t i = 0; i < 3; ++i) {
    take({.op = hawser::Operation::kWrite, .cookie = i, .durable = true}, {{memory_.data(), i * 100, 10}});
  }
  mover_->turn(UINT64_MAX);
  for (int i = 0; i < 3; ++i) disk_->end();
  mover_->turn(UINT64_MAX);
  EXPECT_TRUE(poll().empty());
  ASSERT_EQ(disk_->started.size(), 1u);
  EXPECT_EQ(disk_->started[0].kind, Operation::Kind::kSync);
  disk_->end();
  mover_->turn(UINT64_MAX);
  EXPECT_EQ(poll().size(), 3u);
  EXPECT_EQ(mover_->counters().syncs, 1u);
}

TEST_F(MoverTest, AFailedSyncFailsTheWrite) {
  take({.op = hawser::Operation::kWrite, .cookie = 1, .durable = true}, {{memory_.data(), 0, 10}});
  mover_->turn(UINT64_MAX);
  disk_->end();
  mover_->turn(UINT64_MAX);
  disk_->end(0, EIO);
  mover_->turn(UINT64_MAX);
  EXPECT_EQ(poll().at(0).status.code(), Code::kFailed);
}

/// The real engines, over the whole way.
class RealMover : public ::testing::TestWithParam<Engine> {};

TEST_P(RealMover, WritesAndReadsBack) {
  constexpr std::uint32_t kDepth = 8;
  Status why_not;
  auto queue = open_queue({.engine = GetParam(), .depth = kDepth, .threads = 2}, &why_not);
  if (!queue) GTEST_SKIP() << "no io_uring here: " << queue.error().message();
  Mover mover(std::move(*queue), kDepth);
  const base::TestFolder folder("hawser-mover");
  const auto file = File::open({.path = folder.path("file"), .create = true}).value();
  constexpr std::size_t kSize = 3'000'001;
  std::unique_ptr<void, void (*)(void*)> memory(std::aligned_alloc(4096, 8 << 20), std::free);
  auto* from = static_cast<std::byte*>(memory.get());
  auto* into = from + (4 << 20);
  for (std::size_t i = 0; i < kSize; ++i) from[i] = static_cast<std::byte>(i ^ i >> 8 ^ i >> 16);
  const auto epoll = base::Epoll::open().value();
  ASSERT_TRUE(epoll.add(mover.queue().wait_fd(), EPOLLIN, 0).ok());
  const auto move = [&](hawser::Operation op, const backend::Piece& piece, bool durable) {
    mover.take({.op = op, .file = file, .pieces = {&piece, 1}, .durable = durable});
    Moved moved;
    const Instant deadline = Clock::steady().now() + std::chrono::seconds(60);
    while (mover.poll({&moved, 1}) == 0 && Clock::steady().now() < deadline) {
      std::array<epoll_event, 1> events;
      mover.turn(1 << 20);
      if (mover.can_sleep()) static_cast<void>(epoll.wait(events, std::chrono::seconds(1)));
    }
    return moved;
  };
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{4096}, std::uint64_t{777}}) {
    std::memset(into, 0, kSize);
    const Moved written = move(hawser::Operation::kWrite, {from, offset, kSize}, true);
    EXPECT_TRUE(written.status.ok()) << written.status.to_string();
    const Moved read = move(hawser::Operation::kRead, {into, offset, kSize}, false);
    EXPECT_TRUE(read.status.ok()) << read.status.to_string();
    EXPECT_EQ(std::memcmp(from, into, kSize), 0) << offset;
  }
  EXPECT_EQ(move(hawser::Operation::kRead, {into, 10'000'000, 10}, false).status.code(), Code::kFailed);
  if (file->direct() >= 0) {
    EXPECT_GT(mover.counters().bytes_direct, kSize);
  }
  EXPECT_GT(mover.counters().bytes_buffered, 0u);
}

INSTANTIATE_TEST_SUITE_P(Engines, RealMover, ::testing::Values(Engine::kUring, Engine::kThreads),
                         [](const auto& engine) { return engine.param == Engine::kUring ? "io_uring" : "threads"; });

// The kernel ends a process that writes beyond its limit for files, and a peer chooses where it writes.
TEST(TrialsMover, AWriteBeyondTheFileLimitIsRefusedAndTheProcessLives) {
  const base::TestFolder folder("hawser-mover");
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit = {.rlim_cur = 8192, .rlim_max = 8192};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(9);
    Mover mover(open_thread_queue({.depth = 4, .threads = 1}).value(), 4);
    const auto file = File::open({.path = folder.path("file"), .create = true, .direct = DirectIo::kOff}).value();
    std::vector<std::byte> memory(8193);
    int wrong = 0;
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 40}) {
      const std::vector<backend::Piece> pieces = {{memory.data(), offset, 8192}};
      static_cast<void>(mover.take({.op = hawser::Operation::kWrite, .file = file, .pieces = pieces, .cookie = 1}));
      Moved moved;
      while (mover.poll({&moved, 1}) == 0) mover.turn(UINT64_MAX);
      const bool is_busy = moved.status.code() == Code::kBusy;
      const bool is_named = moved.status.to_string().find("RLIMIT_FSIZE = 8192") != std::string::npos;
      if (offset == 0 ? !moved.status.ok() : !is_busy || !is_named || moved.bytes != 0) wrong |= 1;
    }
    ::_exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace hawser::fileio
