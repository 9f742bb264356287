// A peer to which no path leads is not dead: it stays known, every backend's reason is told, and it is tried again.

#include <gtest/gtest.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <hawser/hawser.h>

#include "agent/open.h"
#include "backend/shm/factory.h"
#include "backend/tcp/factory.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;

/// A folder that can be taken away, as another mount namespace has it.
class Folder {
 public:
  Folder() {
    std::string name = "/tmp/hawser-unreachable-XXXXXX";
    here_ = ::mkdtemp(name.data());
    std::filesystem::permissions(here_, std::filesystem::perms::owner_all);
  }
  ~Folder() {
    std::filesystem::remove_all(here_);
    std::filesystem::remove_all(away());
  }
  std::string path() const { return here_; }
  void take_away() { std::filesystem::rename(here_, away()); }
  void bring_back() { std::filesystem::rename(away(), here_); }

 private:
  std::string away() const { return here_ + "-away"; }
  std::string here_;
};

AgentOptions options(const std::string& name, std::vector<BackendSpec> backends) {
  AgentOptions made{.name = name, .backends = std::move(backends)};
  made.peer_timeout = 500ms;
  made.log.level = LogLevel::kError;
  return made;
}

Agent open(const std::string& name, std::vector<BackendSpec> backends) {
  return std::move(
      open_with(options(name, std::move(backends)), {backend::shm_factory(), backend::tcp_factory()}).value());
}

class Unreachable : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(driver_.attach(there_).ok());
    from_ = here_.add_region({.name = "from", .bytes = source_}).value();
    to_ = there_.add_region({.name = "to", .bytes = target_}).value();
    peer_ = here_.add_peer(there_.card().value()).value();
    const LocalRange from = from_.range(0, source_.size());
    const RemoteRange to = peer_.range("to", 0, target_.size());
    plan_ = here_.plan_write(peer_, {&from, 1}, {&to, 1}).value();
  }
  Status write() {
    Transfer sent = plan_.submit({.deadline = 10s}).value();
    return sent.wait(20s);
  }

  Folder folder_;
  std::vector<std::byte> source_ = std::vector<std::byte>(4096, std::byte{7}), target_ = std::vector<std::byte>(4096);
  Driver driver_ = Driver::start().value();
  Agent there_ = open("there", {{"shm", {{"socket_dir", folder_.path()}}}});
  Agent here_ =
      open("here", {{"shm", {{"socket_dir", "/tmp/hawser-unreachable-" + std::to_string(::getpid())}}}, {"tcp", {}}});
  Region from_, to_;
  Peer peer_;
  Plan plan_;
};

TEST_F(Unreachable, IsNotDeadAndIsReachedOnceItCanBe) {
  folder_.take_away();
  for (int i = 0; i < 2; ++i) {
    const Status status = write();
    EXPECT_EQ(status.code(), Code::kUnsupported) << status.to_string();
    EXPECT_EQ(status.buffer(), BufferState::kUntouched);
    EXPECT_EQ(status.to_string().find("gone"), std::string::npos) << status.to_string();
    EXPECT_EQ(peer_.state(), PeerState::kKnown);
  }
  folder_.bring_back();
  const Status status = write();
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(target_, source_);
}

TEST_F(Unreachable, ItsErrorNamesEveryBackendsReason) {
  folder_.take_away();
  for (const Status& status : {write(), peer_.connect(20s), peer_.send(16, {}, 20s).error(), peer_.notify("x")}) {
    const std::string text = status.to_string();
    EXPECT_EQ(status.code(), Code::kUnsupported) << text;
    EXPECT_NE(text.find("shm: there is no socket"), std::string::npos) << text;
    EXPECT_NE(text.find("tcp: no address"), std::string::npos) << text;
    EXPECT_NE(text.find("mount the folder"), std::string::npos) << text;
  }
}

TEST_F(Unreachable, EndsAtOnceAndNotAtTheDeadline) {
  folder_.take_away();
  const auto from = std::chrono::steady_clock::now();
  EXPECT_FALSE(write().ok());
  EXPECT_FALSE(peer_.connect(20s).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - from, 5s);
}

/// While it lives, this process gets no descriptor.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &limit_);
    const rlimit few = {.rlim_cur = 256, .rlim_max = limit_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    for (int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0; fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) {
      taken_.push_back(fd);
    }
  }
  ~NoDescriptors() {
    for (const int fd : taken_) ::close(fd);
    ::setrlimit(RLIMIT_NOFILE, &limit_);
  }

 private:
  rlimit limit_ = {};
  std::vector<int> taken_;
};

class TrialsShortage : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { ASSERT_TRUE(driver_.attach(there_).ok()); }
  static AgentOptions patient(const BackendSpec& spec) {
    AgentOptions made = options("here", {spec});
    made.peer_timeout = 30s;
    return made;
  }

  Folder folder_;
  BackendSpec spec_{GetParam(), std::string(GetParam()) == "shm" ? Params{{"socket_dir", folder_.path()}} : Params{}};
  Driver driver_ = Driver::start().value();
  std::vector<std::byte> source_ = std::vector<std::byte>(4096, std::byte{7}), target_ = std::vector<std::byte>(4096);
  Agent there_ = open("there", {spec_});
  Agent here_ = open_with(patient(spec_), {backend::shm_factory(), backend::tcp_factory()}).value();
};

/// No descriptor is left for a path: that says nothing of the peer, and is said at once, not at `peer_timeout`.
TEST_P(TrialsShortage, OfThisProcessIsBusyAtOnce) {
#ifdef HAWSER_SANITIZE_ADDRESS_UNDEFINED
  GTEST_SKIP() << "this sanitizer's own checks need descriptors";
#endif
  const Region from = here_.add_region({.name = "from", .bytes = source_}).value();
  const Region to = there_.add_region({.name = "to", .bytes = target_}).value();
  const Peer peer = here_.add_peer(there_.card().value()).value();
  const LocalRange local = from.range(0, source_.size());
  const RemoteRange remote = peer.range("to", 0, target_.size());
  const Plan plan = here_.plan_write(peer, {&local, 1}, {&remote, 1}).value();
  {
    const NoDescriptors shortage;
    Transfer sent = plan.submit({.deadline = 10s}).value();
    const Status status = sent.wait(20s);
    EXPECT_EQ(status.code(), Code::kBusy) << status.to_string();
    EXPECT_NE(status.to_string().find("RLIMIT_NOFILE = 256"), std::string::npos) << status.to_string();
    EXPECT_EQ(status.buffer(), BufferState::kUntouched);
    EXPECT_EQ(peer.state(), PeerState::kKnown);
  }
  Transfer sent = plan.submit({.deadline = 10s}).value();
  const Status status = sent.wait(20s);
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(target_, source_);
}

INSTANTIATE_TEST_SUITE_P(Backends, TrialsShortage, testing::Values("tcp", "shm"),
                         [](const auto& each) { return std::string(each.param); });

/// The socket is there and nobody holds it: that proves a death.
TEST_F(Unreachable, ASocketWithoutAProcessIsADeath) {
  // As a process leaves it that is killed: a file of that kind and name, which no process listens at.
  std::string socket;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    if (entry.path().extension() == ".sock") socket = entry.path().string();
  }
  ASSERT_FALSE(socket.empty());
  const std::string kept = socket + "-kept";
  std::filesystem::create_hard_link(socket, kept);
  there_ = Agent();
  std::filesystem::rename(kept, socket);
  const Status status = write();
  EXPECT_EQ(status.code(), Code::kDisconnected) << status.to_string();
  EXPECT_NE(status.to_string().find("'there' is gone"), std::string::npos) << status.to_string();
  EXPECT_NE(status.to_string().find("its process ended"), std::string::npos) << status.to_string();
  EXPECT_EQ(peer_.state(), PeerState::kDown);
}

}  // namespace
}  // namespace hawser::agent
