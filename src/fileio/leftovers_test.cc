#include "fileio/leftovers.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/test_folder.h"
#include "fileio/fake_queue.h"

namespace hawser::fileio {
namespace {

class LeftoversTest : public ::testing::Test {
 protected:
  /// A mover with one read of 100 bytes under way that was stopped.
  std::unique_ptr<Mover> stopped(std::byte* memory) {
    auto queue = std::make_unique<FakeQueue>(4);
    disk_ = queue.get();
    disk_->disk.assign(100, std::byte{1});
    auto mover = std::make_unique<Mover>(std::move(queue), 4);
    pieces_ = {{.local = memory, .remote = 0, .size = 100}};
    const base::SlotId task = mover->take({.file = file_, .pieces = pieces_, .cookie = 1});
    mover->turn(UINT64_MAX);
    mover->stop(task, Status(Code::kCancelled, "stopped"));
    return mover;
  }

  const base::TestFolder folder_{"hawser-leftovers"};
  std::shared_ptr<File> file_ =
      File::open({.path = folder_.path("file"), .create = true, .direct = DirectIo::kOff}).value();
  std::vector<backend::Piece> pieces_;
  FakeQueue* disk_ = nullptr;
};

TEST_F(LeftoversTest, MemoryAndFilesStayUntilTheEnd) {
  const auto memory = std::make_shared<std::vector<std::byte>>(100);
  keep_until_ended(stopped(memory->data()), {memory});
  EXPECT_EQ(sweep_leftovers(), 1u);
  EXPECT_EQ(memory.use_count(), 2);
  EXPECT_GT(file_.use_count(), 1);
  disk_->end();
  EXPECT_EQ(sweep_leftovers(), 0u);
  EXPECT_EQ(memory.use_count(), 1);
  EXPECT_EQ(file_.use_count(), 1);
}

TEST_F(LeftoversTest, AStoppedOneIsQuietOnlyWhenItsOperationsEnded) {
  std::vector<std::byte> memory(100);
  const auto mover = stopped(memory.data());
  EXPECT_FALSE(mover->quiet_within(std::chrono::milliseconds(1)));
  disk_->end(10);  // Short, and not continued.
  EXPECT_TRUE(mover->quiet_within(Duration::zero()));
  EXPECT_TRUE(disk_->started.empty());
}

// A durable write that was stopped before its fsync began wants none.
TEST_F(LeftoversTest, NoFsyncIsBegunForWhatWasStopped) {
  std::vector<std::byte> memory(100);
  auto queue = std::make_unique<FakeQueue>(1);
  disk_ = queue.get();
  Mover mover(std::move(queue), 1);
  pieces_ = {{.local = memory.data(), .remote = 0, .size = 100}};
  const Request request{
      .op = hawser::Operation::kWrite, .file = file_, .pieces = pieces_, .cookie = 1, .durable = true};
  const base::SlotId first = mover.take(request), second = mover.take(request);
  mover.turn(UINT64_MAX);
  disk_->end();
  mover.turn(UINT64_MAX);  // The queue holds one: the second write, and the first one's fsync must wait.
  mover.stop(first, Status(Code::kCancelled, "stopped"));
  mover.stop(second, Status(Code::kCancelled, "stopped"));
  while (!disk_->started.empty()) {
    EXPECT_NE(disk_->started.front().kind, Operation::Kind::kSync);
    disk_->end();
    mover.turn(UINT64_MAX);
  }
  EXPECT_TRUE(mover.quiet_within(Duration::zero()));
}

}  // namespace
}  // namespace hawser::fileio
