// Two machines and a disk in memory: when chunks on files are acknowledged, and what is staged meanwhile.

#include "backend/stream/file_desk.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "backend/stream/machine_driver.h"
#include "backend/stream/memory_network.h"
#include "backend/stream/test_context.h"
#include "base/test_folder.h"
#include "fileio/fake_queue.h"
#include "fileio/leftovers.h"

namespace hawser::backend::stream {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

class FileDeskTest : public ::testing::Test {
 protected:
  FileDeskTest() {
    auto queue = std::make_unique<fileio::FakeQueue>(128);
    disk_ = queue.get();
    desk_.use(std::move(queue));
    const base::TestFolder folder("hawser-desk");
    RegionEntry entry;
    entry.key = {7, 9};
    entry.size = 64 * kMiB;
    entry.rights = Rights::kReadWrite;
    entry.device = {.kind = DeviceKind::kFile, .ordinal = 0};
    entry.file = fileio::File::open({.path = folder.path("file"), .create = true, .direct = DirectIo::kOff}).value();
    region_ = store_regions_.add(std::move(entry)).value();
    store_ = std::make_unique<Machine>(store_regions_, store_events_, nullptr, options(), &desk_);
    user_ = std::make_unique<Machine>(user_regions_, user_events_, nullptr, options());
    for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = static_cast<std::byte>(i ^ i >> 8);
  }

  static MachineOptions options() { return {.peer = "peer", .streams = 1, .small_max = 16 * 1024}; }
  RemoteRegionRef ref() const {
    RemoteRegionRef ref;
    ref.index = region_->index;
    ref.generation = region_->generation;
    ref.key = region_->key;
    ref.device = region_->device;
    return ref;
  }
  /// A chunk of one piece between the start of memory_ and `offset` in the file.
  bool submit(Machine& machine, Binding* binding, Operation op, std::uint64_t offset, std::uint64_t size,
              bool durable = false) {
    pieces_.push_back({Piece{.local = memory_.data(), .remote = offset, .size = size}});
    Chunk chunk;
    chunk.op = op;
    chunk.covered = op == Operation::kWrite;
    chunk.durable = durable;
    chunk.index = static_cast<std::uint32_t>(pieces_.size());
    chunk.transfer = 1;
    chunk.cookie = pieces_.size();
    chunk.target = binding;
    chunk.pieces = pieces_.back();
    chunk.bytes = size;
    return machine.submit({&chunk, 1}) == 1;
  }
  bool submit(Operation op, std::uint64_t offset, std::uint64_t size, bool durable = false) {
    return submit(*user_, user_->bind(ref()), op, offset, size, durable);
  }
  /// What the desk ended is told to its machine, and that to the user.
  void turn() {
    desk_.turn(UINT64_MAX);
    for (FileJob job; desk_.poll(&job);) job.target->on_file(std::move(job));
    ASSERT_TRUE(deliver(*user_, 0, drain(*store_, 0)).ok());
  }
  void to_store() {
    ASSERT_TRUE(deliver(*store_, 0, drain(*user_, 0)).ok());
    turn();
  }
  static std::string log(EventQueue& events) {
    std::string text;
    std::array<PortEvent, 64> out;
    for (const PortEvent& event : std::span(out).first(events.poll(out))) {
      if (event.kind == PortEvent::Kind::kArrival) text += "arrival;";
      if (event.kind == PortEvent::Kind::kChunkDone) text += std::string(to_string(event.status.code())) + ";";
    }
    return text;
  }

  fileio::FakeQueue* disk_ = nullptr;
  MemorySwitch switch_;
  MemoryNetwork network_{switch_, "store"};
  Identity identity_{.name = "store"};
  std::string lines_;  ///< Logged.
  base::Logger log_{{.level = LogLevel::kDebug, .sink = [this](LogLevel, std::string_view line) { lines_ += line; }}};
  RegionTable store_regions_{4}, user_regions_{4};
  Context context_ = test_context(identity_, store_regions_, log_);
  FileDesk desk_{context_, network_};
  EventQueue store_events_, user_events_;
  std::shared_ptr<const RegionEntry> region_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(2 * kMiB);
  std::deque<std::vector<Piece>> pieces_;
  std::unique_ptr<Machine> store_, user_;
};

TEST_F(FileDeskTest, AWriteIsAcknowledgedWhenTheFileHasIt) {
  ASSERT_TRUE(submit(Operation::kWrite, 100, 9000));
  to_store();
  ASSERT_EQ(disk_->started.size(), 1u);
  EXPECT_EQ(log(store_events_) + log(user_events_), "");
  EXPECT_FALSE(desk_.staged() == 0);
  disk_->end();
  turn();
  EXPECT_EQ(log(store_events_), "arrival;");
  EXPECT_EQ(log(user_events_), "ok;");
  EXPECT_EQ(std::memcmp(disk_->disk.data() + 100, memory_.data(), 9000), 0);
  EXPECT_EQ(desk_.staged(), 0u);
  EXPECT_TRUE(desk_.can_sleep());
}

TEST_F(FileDeskTest, ADurableOneWhenTheDeviceHasIt) {
  ASSERT_TRUE(submit(Operation::kWrite, 0, 9000, true));
  to_store();
  disk_->end();
  turn();
  EXPECT_EQ(log(user_events_), "");
  ASSERT_EQ(disk_->started.size(), 1u);
  EXPECT_EQ(disk_->started.front().kind, fileio::Operation::Kind::kSync);
  disk_->end();
  turn();
  EXPECT_EQ(log(user_events_), "ok;");
}

TEST_F(FileDeskTest, AReadIsAnsweredOnceItIsThere) {
  disk_->disk.assign(50'000, std::byte{0x5a});
  ASSERT_TRUE(submit(Operation::kRead, 1000, 20'000));
  to_store();
  EXPECT_EQ(log(user_events_), "");
  disk_->end(7000);  // Short: the rest is asked for again.
  turn();
  disk_->end();
  turn();
  EXPECT_EQ(log(user_events_), "ok;");
  EXPECT_EQ(memory_[19'999], std::byte{0x5a});
  EXPECT_NE(memory_[20'000], std::byte{0x5a});
  EXPECT_EQ(desk_.staged(), 0u);
}

TEST_F(FileDeskTest, WhatTheDiskRefusesIsTold) {
  ASSERT_TRUE(submit(Operation::kRead, 0, 100));
  to_store();
  disk_->end();  // The file is empty.
  turn();
  EXPECT_EQ(log(user_events_), std::string(to_string(Code::kFailed)) + ";");
  EXPECT_TRUE(lines_.starts_with("store: a read of a file for peer failed: ")) << lines_;
  lines_.clear();
  ASSERT_TRUE(submit(Operation::kWrite, 0, 100));
  to_store();
  disk_->end(UINT64_MAX, ENOSPC);
  turn();
  EXPECT_EQ(log(user_events_), std::string(to_string(Code::kBusy)) + ";");
  EXPECT_TRUE(lines_.starts_with("store: a write of a file for peer failed: ")) << lines_;
  EXPECT_EQ(desk_.staged(), 0u);
}

TEST_F(FileDeskTest, AClosedRegionIsQuietWhenTheKernelIsDone) {
  ASSERT_TRUE(submit(Operation::kWrite, 0, 100));
  ASSERT_TRUE(submit(Operation::kRead, 0, 100));
  to_store();
  store_regions_.close(region_->index, region_->generation);
  EXPECT_FALSE(desk_.region_quiet(region_->index, region_->generation));
  ASSERT_TRUE(submit(Operation::kWrite, 0, 100));  // Comes after the close: does not reach the disk.
  to_store();
  EXPECT_EQ(disk_->started.size(), 2u);
  disk_->end(0, ECANCELED);
  disk_->end(0, ECANCELED);
  turn();
  EXPECT_TRUE(desk_.region_quiet(region_->index, region_->generation));
  const std::string denied = std::string(to_string(Code::kDenied)) + ";";
  EXPECT_EQ(log(user_events_), denied + denied + denied);
  EXPECT_EQ(log(store_events_), "");
}

TEST_F(FileDeskTest, JobsOfAPathThatEndedEndInSilence) {
  ASSERT_TRUE(submit(Operation::kWrite, 0, 100));
  ASSERT_TRUE(submit(Operation::kRead, 0, 100));
  ASSERT_TRUE(deliver(*store_, 0, drain(*user_, 0)).ok());
  desk_.turn(UINT64_MAX);
  store_->fail(Status(Code::kDisconnected, "gone"));
  store_.reset();
  EXPECT_GT(desk_.staged(), 0u);
  while (!disk_->started.empty()) disk_->end();
  desk_.turn(UINT64_MAX);
  FileJob job;
  EXPECT_FALSE(desk_.poll(&job));
  EXPECT_EQ(desk_.staged(), 0u);
  EXPECT_TRUE(desk_.can_sleep());
}

TEST_F(FileDeskTest, WhatAPathLeftWithTheKernelDoesNotLandOverWhatComesLater) {
  ASSERT_TRUE(submit(Operation::kWrite, 0, 100));
  ASSERT_TRUE(deliver(*store_, 0, drain(*user_, 0)).ok());
  desk_.turn(UINT64_MAX);
  store_->fail(Status(Code::kDisconnected, "gone"));
  store_ = std::make_unique<Machine>(store_regions_, store_events_, nullptr, options(), &desk_);
  user_ = std::make_unique<Machine>(user_regions_, user_events_, nullptr, options());
  memory_[0] = std::byte{0x77};
  ASSERT_TRUE(submit(Operation::kWrite, 0, 100));
  to_store();
  ASSERT_EQ(disk_->started.size(), 1u) << "the second waits for the first";
  EXPECT_TRUE(desk_.can_sleep());
  disk_->end();
  turn();
  EXPECT_FALSE(desk_.can_sleep());
  turn();
  ASSERT_EQ(disk_->started.size(), 1u);
  EXPECT_EQ(log(user_events_), "");
  disk_->end();
  turn();
  EXPECT_EQ(log(user_events_), "ok;");
  EXPECT_EQ(disk_->disk[0], std::byte{0x77});
  EXPECT_EQ(desk_.staged(), 0u);
}

TEST_F(FileDeskTest, TheInitiatorKeepsToItsBound) {
  std::uint64_t taken = 0;
  while (submit(Operation::kWrite, 0, kMiB)) taken += kMiB;
  EXPECT_EQ(taken, kFileBytesMax);
  to_store();
  EXPECT_LE(desk_.staged(), kStagedPerPeer);
  for (std::uint64_t i = 0; i < taken / kMiB; ++i) disk_->end();
  turn();
  EXPECT_TRUE(submit(Operation::kWrite, 0, kMiB));
}

TEST_F(FileDeskTest, APeerThatDoesNotGetsNoMoreThanItsShare) {
  std::vector<std::unique_ptr<Machine>> users;
  for (std::uint32_t i = 0; i < 4; ++i) {  // Four initiators that pretend to be one: each keeps to its bound.
    users.push_back(std::make_unique<Machine>(user_regions_, user_events_, nullptr, options()));
    RemoteRegionRef other = ref();
    for (other.generation = 100; other.generation < 100 + i; ++other.generation) users[i]->bind(other);
    Binding* binding = users[i]->bind(ref());  // Its number is another with each.
    while (submit(*users[i], binding, Operation::kWrite, 0, kMiB)) continue;
    ASSERT_TRUE(deliver(*store_, 0, drain(*users[i], 0)).ok());
  }
  EXPECT_EQ(desk_.staged(), kStagedPerPeer);
}

/// Peers of the store, each with a machine of its own there, that ask for all they may and read nothing.
struct Stalled {
  std::unique_ptr<Machine> user, store;
};

// 40 readers that stalled had the whole staging, as long as they liked: all others heard kBusy.
TEST_F(FileDeskTest, TrialsStalledReadersLeaveRoomForOthersAndLoseTheirs) {
  std::vector<Stalled> stalled(60);
  for (Stalled& each : stalled) {
    each.user = std::make_unique<Machine>(user_regions_, user_events_, nullptr, options());
    each.store = std::make_unique<Machine>(store_regions_, store_events_, nullptr, options(), &desk_);
    while (submit(*each.user, each.user->bind(ref()), Operation::kRead, 0, kMiB)) continue;
    ASSERT_TRUE(deliver(*each.store, 0, drain(*each.user, 0)).ok());
  }
  EXPECT_LT(desk_.staged(), kStagedMax);
  ASSERT_TRUE(submit(Operation::kRead, 0, kMiB));  // An honest one.
  disk_->disk.assign(kMiB, std::byte{0x5a});
  ASSERT_TRUE(deliver(*store_, 0, drain(*user_, 0)).ok());
  const auto run_disk = [this] {
    desk_.turn(UINT64_MAX);
    while (!disk_->started.empty()) {
      disk_->end();
      desk_.turn(UINT64_MAX);
    }
    for (FileJob job; desk_.poll(&job);) job.target->on_file(std::move(job));
  };
  for (int i = 0; i < 100; ++i) run_disk();
  ASSERT_TRUE(deliver(*user_, 0, drain(*store_, 0)).ok());
  EXPECT_NE(log(user_events_).find("ok;"), std::string::npos);

  EXPECT_GT(desk_.staged(), 100 * kMiB);
  for (Stalled& each : stalled) {
    for (int period = 0; period < 50; ++period) ASSERT_TRUE(each.store->next_memory_period());  // 2.5 s.
  }
  EXPECT_EQ(desk_.staged(), 0u);
  for (Stalled& each : stalled) {
    ASSERT_TRUE(deliver(*each.user, 0, drain(*each.store, 0)).ok());
    EXPECT_EQ(each.user->chunks_in_flight(), 0u);
  }
}

TEST_F(FileDeskTest, TrialsAReaderThatMovesKeepsItsPlace) {
  ASSERT_TRUE(submit(Operation::kRead, 0, kMiB));
  disk_->disk.assign(kMiB, std::byte{0x5a});
  to_store();
  disk_->end();
  desk_.turn(UINT64_MAX);
  for (FileJob job; desk_.poll(&job);) job.target->on_file(std::move(job));
  std::array<iovec, 64> parts;
  std::uint64_t total = 0;
  for (int period = 0; period < 200; ++period) {  // 10 s, a little in each.
    ASSERT_TRUE(store_->fill(0, 1 << 20));
    std::size_t size = 0;
    std::vector<std::byte> bytes;
    for (const iovec& part : std::span(parts).first(store_->gather(0, parts, 4000))) {
      const auto* from = static_cast<const std::byte*>(part.iov_base);
      bytes.insert(bytes.end(), from, from + part.iov_len);
      size += part.iov_len;
    }
    store_->sent(0, size, total += size);
    ASSERT_TRUE(deliver(*user_, 0, bytes).ok());
    ASSERT_TRUE(store_->next_memory_period());
  }
  ASSERT_TRUE(deliver(*user_, 0, drain(*store_, 0)).ok());
  EXPECT_EQ(log(user_events_), "ok;");
}

TEST_F(FileDeskTest, TrialsAWriterThatStallsLosesItsStaging) {
  ASSERT_TRUE(submit(Operation::kWrite, 0, kMiB));
  const std::vector<std::byte> bytes = drain(*user_, 0);
  ASSERT_TRUE(deliver(*store_, 0, std::span(bytes).first(1000)).ok());
  EXPECT_EQ(desk_.staged(), kMiB);
  for (int period = 0; period < 50; ++period) ASSERT_TRUE(store_->next_memory_period());
  EXPECT_EQ(desk_.staged(), 0u);
  ASSERT_TRUE(deliver(*store_, 0, std::span(bytes).subspan(1000)).ok());
  turn();
  EXPECT_EQ(log(user_events_), std::string(to_string(Code::kBusy)) + ";");
}

TEST_F(FileDeskTest, WithoutADeskARegionInAFileIsNone) {
  store_ = std::make_unique<Machine>(store_regions_, store_events_, nullptr, options());
  ASSERT_TRUE(submit(Operation::kWrite, 0, 100));
  to_store();
  EXPECT_EQ(log(user_events_), std::string(to_string(Code::kDenied)) + ";");
}

// A file system that hangs holds up nobody's close; and it writes from, and into, memory that is still there.
TEST_F(FileDeskTest, WhatTheSystemDoesNotEndIsLeftBehind) {
  auto desk = std::make_unique<FileDesk>(context_, network_);
  auto queue = std::make_unique<fileio::FakeQueue>(8);
  fileio::FakeQueue& disk = *queue;
  desk->use(std::move(queue));
  FileJob job;
  job.op = Operation::kWrite;
  job.region = region_->index;
  job.generation = region_->generation;
  job.file = region_->file;
  job.memory = desk->stage(9000);
  job.bytes = 9000;
  std::memset(job.memory.data(), 'a', 9000);
  job.pieces = {Piece{.local = job.memory.data(), .remote = 0, .size = 9000}};
  desk->start(std::move(job));
  desk->turn(UINT64_MAX);
  ASSERT_EQ(disk.started.size(), 1u);

  desk.reset();
  EXPECT_EQ(disk.cancelled.size(), 1u);
  EXPECT_NE(lines_.find("1 operations on its files"), std::string::npos) << lines_;
  EXPECT_EQ(fileio::sweep_leftovers(), 1u);
  disk.end();  // Reads the memory.
  EXPECT_EQ(disk.disk, std::vector<std::byte>(9000, std::byte{'a'}));
  EXPECT_EQ(fileio::sweep_leftovers(), 0u);
}

}  // namespace
}  // namespace hawser::backend::stream
