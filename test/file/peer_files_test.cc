// Files of a peer, read and written over tcp, through the door.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include <hawser/hawser.h>

#include "base/fd.h"
#include "base/test_folder.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 60s;
constexpr std::size_t kBlock = 4096;
constexpr std::size_t kMiB = 1 << 20;

std::byte byte_at(std::size_t i) { return static_cast<std::byte>(i ^ i >> 8 ^ i >> 16); }

/// Agent "user" moves bytes between its memory and the files of agent "store".
class PeerFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    driver_.emplace(std::move(Driver::start().value()));
    user_ = open_agent("user");
    store_ = open_agent("store");
    peer_ = user_->add_peer(store_->card().value()).value();
  }
  void TearDown() override {
    memory_ = Region();
    peer_ = Peer();
    close(user_);
    close(store_);
  }
  std::optional<Agent> open_agent(const std::string& name) {
    std::optional<Agent> agent =
        std::move(Agent::open({.name = name, .backends = {tcp(), loopback(), file()}}).value());
    EXPECT_TRUE(driver_->attach(*agent).ok());
    return agent;
  }
  void close(std::optional<Agent>& agent) {
    if (agent) static_cast<void>(driver_->detach(*agent));
    agent.reset();
  }

  std::string path(const std::string& name) const { return folder_.path(name); }
  /// A file of `size` bytes that the store serves under its name; the user knows of it.
  Region serve(const std::string& name, std::uint64_t size, Rights rights = Rights::kReadWrite) {
    const base::Fd fd(::open(path(name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
    Region region = std::move(store_->add_file({.name = name, .path = path(name), .rights = rights}).value());
    peer_ = user_->add_peer(store_->card().value()).value();
    return region;
  }
  std::span<std::byte> memory(std::size_t size) {
    memory_ = std::move(user_->allocate({.name = "memory", .size = size}).value());
    for (std::size_t i = 0; i < size; ++i) memory_.bytes()[i] = byte_at(i);
    return memory_.bytes();
  }
  Result<Transfer> start(Operation op, const std::string& file, std::uint64_t in_memory, std::uint64_t in_file,
                         std::uint64_t size, SubmitOptions options = {}) {
    const LocalRange local = memory_.range(in_memory, size);
    const RemoteRange remote = peer_.range(file, in_file, size);
    const Result<Plan> plan = op == Operation::kWrite ? user_->plan_write(peer_, {&local, 1}, {&remote, 1})
                                                      : user_->plan_read(peer_, {&remote, 1}, {&local, 1});
    if (!plan) return plan.error();
    if (options.deadline == Duration::zero()) options.deadline = kPatience;
    return plan->submit(options);
  }
  Status run(Operation op, const std::string& file, std::uint64_t in_memory, std::uint64_t in_file, std::uint64_t size,
             const SubmitOptions& options = {}) {
    Result<Transfer> transfer = start(op, file, in_memory, in_file, size, options);
    return transfer ? transfer->wait(kPatience) : transfer.error();
  }
  std::string content(const std::string& name) const {
    std::string bytes(std::filesystem::file_size(path(name)), '\0');
    const base::Fd fd(::open(path(name).c_str(), O_RDONLY | O_CLOEXEC));
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(::pread(fd.get(), bytes.data(), bytes.size(), 0), 0)));
    return bytes;
  }

  const base::TestFolder folder_{"hawser-peer-files"};
  std::optional<Driver> driver_;
  std::optional<Agent> user_, store_;
  Peer peer_;
  Region memory_;
};

TEST_F(PeerFiles, WriteAndReadBack) {
  constexpr std::size_t kSize = 5 * kMiB + 123;
  const Region file = serve("f", 0);
  const auto bytes = memory(2 * kSize);
  ASSERT_EQ(run(Operation::kWrite, "f", 0, 77, kSize).to_string(), Status().to_string());
  const std::string written = content("f");
  ASSERT_EQ(written.size(), kSize + 77);
  EXPECT_EQ(std::memcmp(written.data() + 77, bytes.data(), kSize), 0);
  ASSERT_EQ(run(Operation::kRead, "f", kSize, 77, kSize).to_string(), Status().to_string());
  EXPECT_EQ(std::memcmp(bytes.data() + kSize, bytes.data(), kSize), 0);
}

TEST_F(PeerFiles, ScatteredBlocksGoWhereTheTablesSay) {
  constexpr std::size_t kCount = 2000;
  const Region file = serve("f", kCount * kBlock);
  const auto bytes = memory(kCount * kBlock);
  std::vector<std::uint64_t> places(kCount);
  std::iota(places.begin(), places.end(), 0);
  std::shuffle(places.begin(), places.end(), std::mt19937(7));
  std::vector<LocalRange> local;
  std::vector<RemoteRange> remote;
  for (std::size_t i = 0; i < kCount; ++i) {
    local.push_back(memory_.range(i * kBlock, kBlock));
    remote.push_back(peer_.range("f", places[i] * kBlock, kBlock));
  }
  const Plan write = user_->plan_write(peer_, local, remote).value();
  ASSERT_TRUE(write.submit({.deadline = kPatience}).value().wait(kPatience).ok());
  const std::string written = content("f");
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(std::memcmp(written.data() + places[i] * kBlock, bytes.data() + i * kBlock, kBlock), 0) << i;
  }
  const std::vector<std::byte> before(bytes.begin(), bytes.end());
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  const Plan read = user_->plan_read(peer_, remote, local).value();
  ASSERT_TRUE(read.submit({.deadline = kPatience}).value().wait(kPatience).ok());
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), before.begin()));
}

TEST_F(PeerFiles, ANotificationComesAfterTheBytesAreInTheFile) {
  const Region file = serve("f", 3 * kMiB);
  const auto bytes = memory(3 * kMiB);
  for (int round = 0; round < 6; ++round) {
    std::fill(bytes.begin(), bytes.end(), static_cast<std::byte>(round + 1));
    Transfer transfer = std::move(start(Operation::kWrite, "f", 0, 0, 3 * kMiB, {.notify = "written"}).value());
    std::optional<Notification> told;
    const Instant deadline = Clock::steady().now() + kPatience;
    while (!(told = store_->take_notification()) && Clock::steady().now() < deadline) store_->wait(1ms);
    ASSERT_TRUE(told.has_value());
    ASSERT_EQ(content("f"), std::string(3 * kMiB, static_cast<char>(round + 1)));
    EXPECT_TRUE(transfer.wait(kPatience).ok());
  }
}

TEST_F(PeerFiles, DurableWritesAndManyAtOnce) {
  const Region file = serve("f", 40 * kMiB);
  static_cast<void>(memory(40 * kMiB));
  std::vector<Transfer> transfers;  // More than what is staged for one peer.
  for (std::size_t i = 0; i < 40; ++i) {
    transfers.push_back(
        std::move(start(Operation::kWrite, "f", i * kMiB, (39 - i) * kMiB, kMiB, {.durable = i % 2 == 0}).value()));
  }
  for (Transfer& transfer : transfers) EXPECT_EQ(transfer.wait(kPatience).to_string(), Status().to_string());
  const std::string written = content("f");
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(std::memcmp(written.data() + (39 - i) * kMiB, memory_.bytes().data() + i * kMiB, kMiB), 0) << i;
  }
}

TEST_F(PeerFiles, SmallReadsPassWhileMuchIsWritten) {
  const Region file = serve("f", 32 * kMiB);
  static_cast<void>(memory(33 * kMiB));
  Transfer bulk = std::move(start(Operation::kWrite, "f", 0, 0, 32 * kMiB).value());
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(run(Operation::kRead, "f", 32 * kMiB, 0, 8).ok());
  EXPECT_TRUE(bulk.wait(kPatience).ok());
}

TEST_F(PeerFiles, AReadBeyondTheEndFails) {
  const Region file = serve("f", kMiB);
  static_cast<void>(memory(4 * kMiB));
  const Status status = run(Operation::kRead, "f", 0, 0, 2 * kMiB);
  EXPECT_EQ(status.code(), Code::kFailed) << status.to_string();
  EXPECT_EQ(status.peer(), "store");
  EXPECT_TRUE(run(Operation::kRead, "f", 0, 0, kMiB).ok());
}

TEST_F(PeerFiles, AFullDiskIsTold) {
  const std::string small = path("small");
  std::filesystem::create_directory(small);
  if (::mount("none", small.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "no right to mount a small file system: " << std::strerror(errno);
  }
  {
    const Region file = serve("small/f", 0);
    static_cast<void>(memory(4 * kMiB));
    const Status status = run(Operation::kWrite, "small/f", 0, 0, 4 * kMiB);
    EXPECT_EQ(status.code(), Code::kBusy) << status.to_string();
    EXPECT_NE(status.to_string().find("disk is full"), std::string::npos) << status.to_string();
  }
  ::umount2(small.c_str(), MNT_DETACH);
}

TEST_F(PeerFiles, RightsAndBoundsHold) {
  const Region file = serve("f", kMiB, Rights::kRead);
  static_cast<void>(memory(kMiB));
  EXPECT_EQ(run(Operation::kWrite, "f", 0, 0, 8).code(), Code::kDenied);
  EXPECT_TRUE(run(Operation::kRead, "f", 0, 0, 8).ok());
}

TEST_F(PeerFiles, AClosedFileIsQuietAndStaysAsItIs) {
  Region file = serve("f", 24 * kMiB);
  static_cast<void>(memory(24 * kMiB));
  Transfer write = std::move(start(Operation::kWrite, "f", 0, 0, 24 * kMiB).value());
  ASSERT_TRUE(file.close(kPatience).ok());
  const std::string closed = content("f");
  const Status status = write.wait(kPatience);
  EXPECT_TRUE(status.ok() || status.code() == Code::kDenied || status.code() == Code::kDisconnected)
      << status.to_string();
  EXPECT_EQ(content("f"), closed);
}

TEST_F(PeerFiles, CancelledIsFinalAndThePathStaysGood) {
  constexpr std::byte kAfter{0xdd};  // What is in memory once the status is final: it must go nowhere, and stay.
  const Region file = serve("f", 8 * kMiB);
  const auto bytes = memory(8 * kMiB);
  const auto is_after = [](std::byte byte) { return byte == kAfter; };
  for (int i = 0; i < 20; ++i) {
    const Operation op = i % 2 == 0 ? Operation::kWrite : Operation::kRead;
    std::fill(bytes.begin(), bytes.end(), static_cast<std::byte>(i));
    Transfer transfer = std::move(start(op, "f", 0, 0, bytes.size()).value());
    std::this_thread::sleep_for(std::chrono::microseconds(100 * i));
    transfer.cancel();
    const Status status = transfer.wait(kPatience);
    ASSERT_TRUE(status.ok() || status.code() == Code::kCancelled) << status.to_string();
    std::fill(bytes.begin(), bytes.end(), kAfter);
    if (op == Operation::kRead) {
      std::this_thread::sleep_for(2ms);
      ASSERT_TRUE(std::all_of(bytes.begin(), bytes.end(), is_after)) << i;
    }
  }
  const std::string written = content("f");
  EXPECT_EQ(written.find(static_cast<char>(kAfter)), std::string::npos);
  EXPECT_EQ(run(Operation::kWrite, "f", 0, 0, kMiB).to_string(), Status().to_string());
}

TEST_F(PeerFiles, EitherSideMayGoInTheMiddle) {
  static_cast<void>(serve("f", 24 * kMiB));
  const Region file = serve("g", 24 * kMiB);
  static_cast<void>(memory(24 * kMiB));
  std::optional<Agent> other = open_agent("other");
  {
    const Region source = std::move(other->allocate({.size = 24 * kMiB}).value());
    const Peer store = other->add_peer(store_->card().value()).value();
    const LocalRange local = source.range(0, 24 * kMiB);
    const RemoteRange remote = store.range("g", 0, 24 * kMiB);
    const Plan plan = other->plan_write(store, {&local, 1}, {&remote, 1}).value();
    const Transfer gone = std::move(plan.submit({.deadline = kPatience}).value());
  }
  close(other);  // The user of the file, with chunks of its on the desk.
  Transfer transfer = std::move(start(Operation::kWrite, "g", 0, 0, 24 * kMiB).value());
  close(store_);
  const Status status = transfer.wait(kPatience);
  EXPECT_TRUE(status.ok() || status.code() == Code::kDisconnected) << status.to_string();
}

TEST(PeerFilesByDefault, TheWayIsTcpAlsoOnOneHost) {
  Agent a = std::move(Agent::open({.name = "a"}).value()), b = std::move(Agent::open({.name = "b"}).value());
  const base::TestFolder folder("hawser-files");
  const base::Fd fd(::open(folder.path("file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const Region file = std::move(b.add_file({.name = "f", .descriptor = fd.get()}).value());
  const Region memory = std::move(a.allocate({.size = kBlock}).value());
  std::fill(memory.bytes().begin(), memory.bytes().end(), std::byte{'x'});
  Driver driver = std::move(Driver::start().value());
  ASSERT_TRUE(driver.attach(b).ok());
  const Peer peer = a.add_peer(b.card().value()).value();
  const LocalRange source = memory.range(0, 8);
  const RemoteRange target = peer.range("f", 0, 8);
  const Plan plan = a.plan_write(peer, {&source, 1}, {&target, 1}).value();
  EXPECT_EQ(plan.submit({.deadline = kPatience}).value().wait(kPatience).to_string(), Status().to_string());
  char bytes[8] = {};
  EXPECT_EQ(::pread(fd.get(), bytes, 8, 0), 8);
  EXPECT_EQ(std::string_view(bytes, 8), "xxxxxxxx");
  static_cast<void>(driver.detach(b));
}

}  // namespace
}  // namespace hawser
