// Files as regions of an agent, through the door: moved, ended early, used wrongly.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <optional>

#include <hawser/hawser.h>

#include "base/fd.h"
#include "base/format.h"
#include "base/test_folder.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 60s;
constexpr std::size_t kBlock = 4096;

struct Way {
  std::string name;
  std::string engine;
  bool driven = false;
};

class FileRegions : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    Result<Agent> opened = Agent::open({.name = "files",
                                        .backends = {loopback(), file({{"engine", GetParam().engine}, {"depth", "8"}})},
                                        .driven = GetParam().driven});
    if (!opened && GetParam().engine == "io_uring") GTEST_SKIP() << "no io_uring: " << opened.error().message();
    agent_.emplace(std::move(opened.value()));
    if (GetParam().driven) {
      driver_.emplace(std::move(Driver::start().value()));
      ASSERT_TRUE(driver_->attach(*agent_).ok());
    }
  }
  void TearDown() override {
    memory_ = Region();
    if (driver_) static_cast<void>(driver_->detach(*agent_));
    agent_.reset();
  }

  std::string path(const std::string& name) const { return folder_.path(name); }
  base::Fd make(const std::string& name, std::uint64_t size = 0, int flags = 0) const {
    base::Fd fd(::open(path(name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600));
    EXPECT_TRUE(fd.valid()) << std::strerror(errno);
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
    return fd;
  }
  /// Page-aligned memory of the agent, filled so that each byte tells its place.
  std::span<std::byte> memory(std::size_t size) {
    memory_ = std::move(agent_->allocate({.name = "memory", .size = size}).value());
    for (std::size_t i = 0; i < size; ++i) memory_.bytes()[i] = byte_at(i);
    return memory_.bytes();
  }
  static std::byte byte_at(std::size_t i) { return static_cast<std::byte>(i ^ i >> 8 ^ i >> 16); }

  Status write(const std::string& region, std::uint64_t from, std::uint64_t to, std::uint64_t size,
               const SubmitOptions& options = {}) {
    const LocalRange source = memory_.range(from, size);
    const RemoteRange target = agent_->self().range(region, to, size);
    const Result<Plan> plan = agent_->plan_write(agent_->self(), {&source, 1}, {&target, 1});
    return plan ? run(*plan, options) : plan.error();
  }
  Status read(const std::string& region, std::uint64_t from, std::uint64_t to, std::uint64_t size) {
    const LocalRange target = memory_.range(to, size);
    const RemoteRange source = agent_->self().range(region, from, size);
    const Result<Plan> plan = agent_->plan_read(agent_->self(), {&source, 1}, {&target, 1});
    return plan ? run(*plan, {}) : plan.error();
  }
  static Status run(const Plan& plan, SubmitOptions options) {
    if (options.deadline == Duration::zero()) options.deadline = kPatience;
    Result<Transfer> transfer = plan.submit(options);
    return transfer ? transfer->wait(kPatience) : transfer.error();
  }
  std::string content(const std::string& name, std::size_t size) const {
    const base::Fd fd(::open(path(name).c_str(), O_RDONLY | O_CLOEXEC));
    std::string bytes(size, '\0');
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(::pread(fd.get(), bytes.data(), size, 0), 0)));
    return bytes;
  }

  const base::TestFolder folder_{"hawser-files"};
  std::optional<Agent> agent_;
  std::optional<Driver> driver_;
  Region memory_;
};

TEST_P(FileRegions, WriteAndReadBackByPathAndByDescriptor) {
  constexpr std::size_t kSize = 5'000'001;
  const auto bytes = memory(2 * kSize);
  const base::Fd fd = make("by_descriptor");
  const Region by_path = std::move(agent_->add_file({.name = "path", .path = path("by_path"), .create = true}).value());
  const Region by_fd = std::move(agent_->add_file({.name = "fd", .descriptor = fd.get()}).value());
  EXPECT_EQ(by_path.device().kind, DeviceKind::kFile);
  EXPECT_TRUE(by_path.bytes().empty());
  for (const std::string region : {"path", "fd"}) {
    for (const std::uint64_t offset : {0, 777}) {
      ASSERT_EQ(write(region, 0, offset, kSize).to_string(), Status().to_string());
      std::memset(bytes.data() + kSize, 0, kSize);
      ASSERT_EQ(read(region, offset, kSize, kSize).to_string(), Status().to_string());
      EXPECT_EQ(std::memcmp(bytes.data(), bytes.data() + kSize, kSize), 0) << region << " at " << offset;
    }
  }
  EXPECT_EQ(query_file(path("by_path")).value().size, kSize + 777);
}

TEST_P(FileRegions, ScatteredBlocksGoWhereTheTablesSay) {
  constexpr std::uint32_t kCount = 500;
  const auto bytes = memory(kCount * kBlock);
  const base::Fd fd = make("blocks");
  const Region region = std::move(agent_->add_file({.name = "blocks", .descriptor = fd.get()}).value());
  std::vector<std::uint32_t> here(kCount), there(kCount);
  std::iota(here.begin(), here.end(), 0);
  for (std::uint32_t i = 0; i < kCount; ++i) there[i] = (i * 37) % kCount;
  const Plan plan =
      agent_
          ->plan_write(agent_->self(), memory_.table(kBlock), here,
                       agent_->self().table("blocks", {.offset = 0, .size = kBlock, .stride = kBlock, .count = kCount}),
                       there)
          .value();
  ASSERT_TRUE(run(plan, {.notify = "written"}).ok());
  const Instant deadline = Clock::steady().now() + kPatience;
  std::optional<Notification> told;
  while (!(told = agent_->take_notification()) && Clock::steady().now() < deadline) agent_->wait(10ms);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->text, "written");
  const std::string file = content("blocks", kCount * kBlock);
  ASSERT_EQ(file.size(), kCount * kBlock);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(std::memcmp(file.data() + there[i] * kBlock, bytes.data() + i * kBlock, kBlock), 0) << i;
  }
}

TEST_P(FileRegions, DirectIoAndItsEdgesAreVisible) {
  constexpr std::size_t kSize = 1 << 20;
  memory(kSize);
  Result<Region> region =
      agent_->add_file({.name = "direct", .path = path("direct"), .create = true, .direct = DirectIo::kRequire});
  if (!region) {
    EXPECT_EQ(region.error().code(), Code::kUnsupported);
    GTEST_SKIP() << "the temporary folder's file system has no direct I/O";
  }
  ASSERT_TRUE(write("direct", 0, 0, kSize).ok());
  ASSERT_TRUE(write("direct", 0, 100, kSize - 100).ok());
  std::uint64_t direct = 0, buffered = 0;
  for (const PathCounters& path : agent_->counters().paths) {
    direct += path.bytes_direct;
    buffered += path.bytes_buffered;
  }
  EXPECT_GE(direct, kSize);  // All of the first; the second's memory does not lie as its offsets do.
  EXPECT_GT(buffered, 0u);
  const LocalRange source = memory_.range(0, kSize);
  const RemoteRange target = agent_->self().range("direct", 0, kSize);
  const std::string text = agent_->explain(agent_->plan_write(agent_->self(), {&source, 1}, {&target, 1}).value());
  EXPECT_NE(text.find("* file"), std::string::npos) << text;
  EXPECT_NE(text.find("bytes past the page cache"), std::string::npos) << text;
}

TEST_P(FileRegions, DurableIsForFilesOnly) {
  memory(kBlock);
  const Region region = std::move(agent_->add_file({.name = "f", .path = path("f"), .create = true}).value());
  EXPECT_TRUE(write("f", 0, 0, kBlock, {.durable = true}).ok());
  EXPECT_EQ(write("memory", 0, 0, kBlock, {.durable = true}).code(), Code::kInvalid);
}

TEST_P(FileRegions, AFileTruncatedUnderATransferNamesItsEnd) {
  memory(10 * kBlock);
  const base::Fd fd = make("short", 10 * kBlock);
  const Region region = std::move(agent_->add_file({.name = "short", .descriptor = fd.get()}).value());
  const LocalRange target = memory_.range(0, 10 * kBlock);
  const RemoteRange source = agent_->self().range("short", 0, 10 * kBlock);
  const Plan plan = agent_->plan_read(agent_->self(), {&source, 1}, {&target, 1}).value();
  ASSERT_TRUE(run(plan, {}).ok());
  ASSERT_EQ(::ftruncate(fd.get(), 5000), 0);
  const Status status = run(plan, {});
  EXPECT_EQ(status.code(), Code::kFailed);
  EXPECT_NE(status.message().find("byte 5000"), std::string::npos) << status.to_string();
  EXPECT_NE(status.message().find("short"), std::string::npos) << status.to_string();
}

TEST_P(FileRegions, AFullDiskIsToldWithTheRemedy) {
  const std::string small = path("small");
  std::filesystem::create_directory(small);
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", small.c_str(), "tmpfs", 0, "size=256k") != 0) {
    GTEST_SKIP() << "no right to mount a small file system: " << std::strerror(errno);
  }
  constexpr std::size_t kSize = 1 << 20;
  memory(kSize);
  {
    const Region region = std::move(agent_->add_file({.name = "full", .path = small + "/f", .create = true}).value());
    const Status status = write("full", 0, 0, kSize);
    EXPECT_EQ(status.code(), Code::kBusy) << status.to_string();
    EXPECT_NE(status.advice().find("free space"), std::string::npos);
    EXPECT_TRUE(write("full", 0, 0, kBlock).ok());  // What fits still goes.
  }
  ::umount2(small.c_str(), MNT_DETACH);
}

TEST_P(FileRegions, CancelledIsFinalAndClosedIsQuiet) {
  constexpr std::size_t kSize = 32 << 20;
  const auto bytes = memory(kSize);
  Region region = std::move(agent_->add_file({.name = "f", .path = path("f"), .create = true}).value());
  const LocalRange source = memory_.range(0, kSize);
  const RemoteRange target = agent_->self().range("f", 0, kSize);
  const Plan plan = agent_->plan_write(agent_->self(), {&source, 1}, {&target, 1}).value();
  Transfer transfer = std::move(plan.submit({.deadline = kPatience}).value());
  transfer.cancel();
  const Status cancelled = transfer.wait(kPatience);
  EXPECT_TRUE(transfer.done());
  EXPECT_TRUE(cancelled.ok() || cancelled.code() == Code::kCancelled) << cancelled.to_string();
  Transfer other = std::move(plan.submit({.deadline = kPatience}).value());
  EXPECT_TRUE(region.close(kPatience).ok());
  const Status closed = other.wait(kPatience);
  EXPECT_TRUE(other.done());
  EXPECT_TRUE(closed.ok() || closed.code() == Code::kDenied) << closed.to_string();
  EXPECT_FALSE(plan.submit({}).has_value() && write("f", 0, 0, kBlock).ok());
  EXPECT_EQ(bytes[kSize - 1], byte_at(kSize - 1));
}

TEST_P(FileRegions, DeadlinesEndTransfers) {
  constexpr std::size_t kSize = 32 << 20;
  memory(kSize);
  const Region region = std::move(agent_->add_file({.name = "f", .path = path("f"), .create = true}).value());
  const Status status = write("f", 0, 0, kSize, {.deadline = 1ns});
  EXPECT_EQ(status.code(), Code::kTimedOut);
}

TEST_P(FileRegions, TheAgentClosesUnderTransfers) {
  constexpr std::size_t kSize = 16 << 20;
  memory(kSize);
  const Region region = std::move(agent_->add_file({.name = "f", .path = path("f"), .create = true}).value());
  const LocalRange source = memory_.range(0, kSize);
  const RemoteRange target = agent_->self().range("f", 0, kSize);
  const Plan plan = agent_->plan_write(agent_->self(), {&source, 1}, {&target, 1}).value();
  Transfer transfer = std::move(plan.submit({.deadline = kPatience}).value());
  EXPECT_TRUE(agent_->close(kPatience).ok());
  EXPECT_TRUE(transfer.done());
}

TEST_P(FileRegions, RightsAndBoundsHold) {
  memory(kBlock);
  static_cast<void>(make("f", kBlock));
  const Region region =
      std::move(agent_->add_file({.name = "f", .path = path("f"), .size = kBlock, .rights = Rights::kRead}).value());
  EXPECT_EQ(write("f", 0, 0, kBlock).code(), Code::kDenied);
  EXPECT_EQ(read("f", 1, 0, kBlock).code(), Code::kInvalid);
  EXPECT_TRUE(read("f", 0, 0, kBlock).ok());
}

TEST_P(FileRegions, WrongUseGetsAnError) {
  memory(kBlock);
  const Region region = std::move(agent_->add_file({.name = "f", .path = path("f"), .create = true}).value());
  EXPECT_EQ(agent_->add_file({.name = "f", .path = path("g"), .create = true}).error().code(), Code::kInvalid);
  EXPECT_EQ(agent_->add_file({}).error().code(), Code::kInvalid);
  EXPECT_EQ(agent_->add_file({.path = folder_.path()}).error().code(), Code::kInvalid);
  EXPECT_EQ(agent_->add_file({.path = path("f"), .size = UINT64_MAX}).error().code(), Code::kInvalid);
  std::vector<std::byte> bytes(8);
  EXPECT_EQ(agent_->add_region({.bytes = bytes, .device = {.kind = DeviceKind::kFile}}).error().code(), Code::kInvalid);

  const LocalRange in_file = region.range(0, 8);
  const RemoteRange in_memory = agent_->self().range("memory", 0, 8);
  const Status local = agent_->plan_write(agent_->self(), {&in_file, 1}, {&in_memory, 1}).error();
  EXPECT_EQ(local.code(), Code::kUnsupported);
  EXPECT_NE(local.message().find("far side"), std::string::npos);
  EXPECT_EQ(agent_->read_signal(in_file).error().code(), Code::kInvalid);
  const SignalWord word{.word = in_file, .value = 1};
  EXPECT_EQ(write("f", 0, 0, 8, {.after = &word}).code(), Code::kInvalid);
  EXPECT_EQ(write("f", 0, 0, 8, {.done = &word}).code(), Code::kInvalid);
  const SignalTarget signal{.word = agent_->self().range("f", 0, 8), .add = 1};
  EXPECT_EQ(write("f", 0, 0, 8, {.signal = &signal}).code(), Code::kInvalid);
}

TEST_P(FileRegions, AForkedChildDoesNotDisturbTransfers) {
  if (GetParam().driven) GTEST_SKIP() << "forking is tested where the test's thread is the only one of the agent";
  constexpr std::size_t kSize = 4 << 20;
  memory(kSize);
  const Region region = std::move(agent_->add_file({.name = "f", .path = path("f"), .create = true}).value());
  ASSERT_TRUE(write("f", 0, 0, kBlock).ok());
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(agent_->add_file({.path = path("g"), .create = true}).error().code() == Code::kInvalid ? 0 : 1);
  ASSERT_GT(child, 0);
  EXPECT_TRUE(write("f", 0, 0, kSize).ok());
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(write("f", 0, 0, kSize).ok());
}

std::vector<Way> ways() {
  std::vector<Way> all;
  for (const std::string engine : {"io_uring", "threads"}) {
    for (const bool driven : {false, true}) all.push_back({engine + (driven ? "_driven" : "_polled"), engine, driven});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Ways, FileRegions, ::testing::ValuesIn(ways()),
                         [](const auto& way) { return way.param.name; });

TEST(FileBackend, OpensByItselfWhereBackendsWereNotNamed) {
  Agent agent = std::move(Agent::open({.name = "auto"}).value());
  EXPECT_FALSE(agent.has_backend("file"));
  const base::TestFolder folder("hawser-files");
  const base::Fd fd(::open(folder.path("file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_TRUE(agent.add_file({.descriptor = fd.get()}).has_value());
  EXPECT_TRUE(agent.has_backend("file"));

  Agent named = std::move(Agent::open({.name = "named", .backends = {loopback()}}).value());
  const Status missing = named.add_file({.descriptor = fd.get()}).error();
  EXPECT_EQ(missing.code(), Code::kUnsupported);
  EXPECT_NE(missing.advice().find("hawser::file()"), std::string::npos);
}

TEST(FileBackend, CanBeTheOnlyOne) {
  Agent agent = std::move(Agent::open({.name = "alone", .backends = {file()}}).value());
  ASSERT_TRUE(agent.self().connect(kPatience).ok());
  EXPECT_TRUE(agent.self().notify("hello").ok());
  const Instant deadline = Clock::steady().now() + kPatience;
  std::optional<Notification> told;
  while (!(told = agent.take_notification()) && Clock::steady().now() < deadline) agent.wait(10ms);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->text, "hello");
}

}  // namespace
}  // namespace hawser
