// The path to an agent's own files is dropped while the agent stays open, and the disk hangs: who drops it goes on, and
// the memory counts as used until the disk has ended.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "backend/file/port.h"
#include "base/test_folder.h"
#include "fileio/fake_queue.h"
#include "fileio/file.h"

namespace hawser::backend::file {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSize = 8192;

class DroppedPath : public testing::Test {
 protected:
  DroppedPath() {
    identity_.name = "files";
    identity_.incarnation = base::random_id128();
    const Context context{identity_, regions_, log_, base::Rng(1), Security::kDefault, {}, {}, Clock::steady()};
    auto queue = std::make_unique<fileio::FakeQueue>(8);
    disk_ = queue.get();
    port_ = std::make_unique<FilePort>(context, "here", std::move(queue), 8);
    RegionEntry file;
    file.key = base::random_id128();
    file.size = kSize;
    file.rights = Rights::kReadWrite;
    file.file = fileio::File::open({.path = folder_.path("file"), .create = true, .direct = DirectIo::kOff}).value();
    file_ = regions_.add(std::move(file)).value();
    RegionEntry memory;
    memory.key = base::random_id128();
    memory.base = bytes_.data();
    memory.size = kSize;
    memory.rights = Rights::kReadWrite;
    memory_ = regions_.add(std::move(memory)).value();
  }

  Path* open_path() {
    return port_
        ->open_path({.peer = "files", .incarnation = {}, .address = "here", .supersedes = {}, .deadline = {}}, {})
        .value();
  }
  /// Starts to write all of the memory, until the disk has it.
  void begin(Path& path) {
    Binding* const target =
        path.bind({file_->index, file_->generation, file_->key, file_->size, file_->rights, file_->device, {}}).value();
    piece_ = {bytes_.data(), 0, kSize};
    Chunk chunk;
    chunk.op = Operation::kWrite;
    chunk.transfer = chunk.cookie = 1;
    chunk.target = target;
    chunk.pieces = {&piece_, 1};
    chunk.bytes = kSize;
    ASSERT_EQ(path.submit({&chunk, 1}, {}).taken, 1u);
    ASSERT_EQ(disk_->started.size(), 1u);
  }
  bool quiet(const RegionEntry& region, std::string* holder = nullptr) {
    return port_->region_quiet(region.index, region.generation, holder);
  }
  /// Events of chunks.
  std::size_t ended_chunks() {
    port_->turn({}, {});
    std::vector<PortEvent> events(16);
    events.resize(port_->poll(events));
    return static_cast<std::size_t>(
        std::ranges::count(events, PortEvent::Kind::kChunkDone, [](const PortEvent& event) { return event.kind; }));
  }

  const base::TestFolder folder_{"hawser-dropped"};
  Identity identity_;
  RegionTable regions_{16};
  base::Logger log_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kSize, std::byte{'a'});
  Piece piece_;
  std::shared_ptr<const RegionEntry> file_, memory_;
  fileio::FakeQueue* disk_ = nullptr;
  std::unique_ptr<FilePort> port_;
};

TEST_F(DroppedPath, ADiskThatHangsIsNotWaitedForWithoutEnd) {
  Path* const path = open_path();
  begin(*path);
  const auto start = std::chrono::steady_clock::now();
  port_->release_path(path);
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(took, 1900ms);
  EXPECT_LT(took, 20s);
  EXPECT_EQ(disk_->cancelled.size(), 1u);
  std::string holder;
  EXPECT_FALSE(quiet(*memory_, &holder));
  EXPECT_NE(holder.find("kernel"), std::string::npos) << holder;
  EXPECT_FALSE(quiet(*file_));

  disk_->end();
  EXPECT_TRUE(quiet(*memory_));
  EXPECT_TRUE(quiet(*file_));
  EXPECT_EQ(ended_chunks(), 0u) << "no event comes of a path that was released";
  EXPECT_EQ(disk_->disk, bytes_);

  begin(*open_path());  // A new one works.
  disk_->end();
  EXPECT_EQ(ended_chunks(), 1u);
}

TEST_F(DroppedPath, ThePortMayCloseWithWhatIsLeft) {
  Path* const path = open_path();
  begin(*path);
  port_->release_path(path);
  port_->begin_close({});
  EXPECT_FALSE(port_->idle());
  EXPECT_FALSE(quiet(*memory_));
  disk_->end();
  EXPECT_TRUE(quiet(*memory_));
  EXPECT_TRUE(port_->idle());
}

TEST_F(DroppedPath, WhatEndsMeanwhileIsOver) {
  Path* const path = open_path();
  begin(*path);
  disk_->end(0, ECANCELED);  // As the kernel does when it is asked to give it up.
  port_->release_path(path);
  EXPECT_TRUE(quiet(*memory_));
  EXPECT_TRUE(quiet(*file_));
  EXPECT_EQ(ended_chunks(), 0u) << "no event comes of a path that was released";
}

}  // namespace
}  // namespace hawser::backend::file
