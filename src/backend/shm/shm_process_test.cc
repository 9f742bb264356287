// Two agents' ports in two processes, one of which is killed, stopped or replaced.

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <ctime>
#include <filesystem>

#include "backend/shm/test_host.h"

namespace hawser::backend::shm {
namespace {

using std::chrono::milliseconds;

constexpr Duration kDeathNoticed = milliseconds(50);  ///< Must hold once in a few tries: the machine may be busy.
constexpr std::size_t kRegionBytes = 4u << 20;

/// What a child must know to open a path to its parent and use one of its regions.
struct ProcessInvitation {
  char address[256] = {};
  std::size_t address_size = 0;
  base::Id128 incarnation;
  RemoteRegionRef region;
};

/// A child process, and pipes to and from it.
class Child {
 public:
  template <typename Main>
  explicit Child(Main&& main) {
    int down[2];
    int up[2];
    if (::pipe(down) != 0 || ::pipe(up) != 0) std::abort();
    process_ = ::fork();
    const bool is_child = process_ == 0;
    in_ = is_child ? down[0] : up[0];
    out_ = is_child ? up[1] : down[1];
    ::close(is_child ? down[1] : down[0]);
    ::close(is_child ? up[0] : up[1]);
    if (!is_child) return;
    main(*this);
    ::_exit(0);
  }
  ~Child() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    ::close(in_);
    ::close(out_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t process() const { return process_; }
  void signal(int number) const { ::kill(process_, number); }
  void wait_stopped() const { ::waitpid(process_, nullptr, WUNTRACED); }
  /// Dead, as its peers see it; the destructor still finds it.
  void wait_dead() const { ::waitid(P_PID, static_cast<id_t>(process_), nullptr, WEXITED | WNOWAIT); }
  template <typename T>
  void tell(const T& value) const {
    if (::write(out_, &value, sizeof value) != sizeof value) std::abort();
  }
  template <typename T>
  T hear() const {
    T value;
    if (::read(in_, static_cast<void*>(&value), sizeof value) != sizeof value) ::_exit(1);
    return value;
  }
  bool has_told() const {
    pollfd watched{in_, POLLIN, 0};
    return ::poll(&watched, 1, 0) == 1;
  }

 private:
  pid_t process_ = 0;
  int in_ = -1;
  int out_ = -1;
};

ProcessInvitation invite(TestHost& host, const RegionEntry& region) {
  ProcessInvitation invitation;
  const std::string address = host.backend().address();
  invitation.address_size = address.copy(invitation.address, sizeof invitation.address);
  invitation.incarnation = host.identity().incarnation;
  invitation.region = host.ref(region);
  invitation.region.extra = {};
  return invitation;
}

/// A child's own agent with a path to its parent.
struct Initiator {
  Initiator(const Child& child, const std::string& folder, Options options = {}) : host("child", folder, options) {
    invitation = child.hear<ProcessInvitation>();
    path = host.open({.peer = {},
                      .incarnation = invitation.incarnation,
                      .address = {invitation.address, invitation.address_size},
                      .supersedes = {},
                      .deadline = Instant::max()});
    if (!turn_until({&host}, [&] { return host.ups.contains(path); })) ::_exit(2);
    target = path->bind(invitation.region).value();
  }
  /// Writes one value all over the region until that is refused.
  void write_on(std::byte value, std::size_t size = kRegionBytes) {
    std::vector<std::byte> source(size, value);
    const Piece piece{source.data(), 0, size};
    const Chunk chunk = chunk_of(Operation::kWrite, target, {&piece, 1}, 1);
    for (;;) {
      host.done.clear();
      const Submitted submitted = path->submit({&chunk, 1}, Instant());
      if (submitted.taken == 0) return;
      if (submitted.done == 1) continue;
      if (!turn_until({&host}, [&] { return host.done.contains(1); })) ::_exit(3);
      if (!host.done[1].ok()) return;
    }
  }
  TestHost host;
  ProcessInvitation invitation;
  Path* path = nullptr;
  Binding* target = nullptr;
};

class ShmProcess : public ::testing::Test {
 protected:
  /// Waits until the child's path is up here.
  void meet(TestHost& host, const Child& child, const RegionEntry& region) {
    child.tell(invite(host, region));
    ASSERT_TRUE(turn_until({&host}, [&] { return host.inbound != nullptr; }));
  }
  /// Turns until the child's path is down, and says how long that took.
  Duration time_to_down(TestHost& host) {
    const Instant start = Clock::steady().now();
    EXPECT_TRUE(turn_until({&host}, [&] { return host.downs.contains(host.inbound); }));
    return Clock::steady().now() - start;
  }
  TestFolder folder_;
};

TEST_F(ShmProcess, AKilledInitiatorIsNamedAtOnceAndHoldsNothing) {
  Duration best = Duration::max();
  for (int round = 0; round < 10; ++round) {
    Child child([&](Child& self) {
      Initiator initiator(self, folder_.path());
      initiator.write_on(std::byte{0x5a});
    });
    TestHost host("parent", folder_.path());
    auto region = host.allocate(kRegionBytes);
    meet(host, child, *region);
    ASSERT_TRUE(turn_until({&host}, [&] { return region->base[round * 1000] == std::byte{0x5a}; }));
    child.signal(SIGKILL);
    best = std::min(best, time_to_down(host));
    const Status status = host.downs[host.inbound];
    EXPECT_EQ(status.code(), Code::kDisconnected);
    EXPECT_EQ(status.scope(), Scope::kPeer);
    EXPECT_EQ(status.peer(), "child");
    EXPECT_NE(status.message().find(base::format("process {} exited", child.process())), std::string_view::npos)
        << status.to_string();
    host.regions().close(region->index, region->generation);
    EXPECT_TRUE(host.port().region_quiet(region->index, region->generation, nullptr));
  }
  EXPECT_LE(best, kDeathNoticed);
}

TEST_F(ShmProcess, MessagesOfAKilledSenderAreAWholePrefix) {
  for (int round = 0; round < 10; ++round) {
    Child child([&](Child& self) {
      Initiator initiator(self, folder_.path());
      for (std::uint32_t i = 0;; ++i) {
        std::string text(8 + i % 300, static_cast<char>(i));
        std::memcpy(text.data(), &i, sizeof i);
        while (!initiator.path->send(Priority::kBulk, bytes_of(text), {})) initiator.host.turn();
      }
    });
    TestHost host("parent", folder_.path());
    auto region = host.allocate(kRegionBytes);
    meet(host, child, *region);
    const std::size_t enough = 100 + static_cast<std::size_t>(round) * 1357;
    ASSERT_TRUE(turn_until({&host}, [&] { return host.messages.size() > enough; }));
    child.signal(SIGKILL);
    time_to_down(host);
    for (std::uint32_t i = 0; i < host.messages.size(); ++i) {
      std::string expected(8 + i % 300, static_cast<char>(i));
      std::memcpy(expected.data(), &i, sizeof i);
      ASSERT_EQ(host.messages[i], expected) << i;
    }
  }
}

/// The child stops itself between its pin and its copy; meanwhile the region closes.
void run_stopped_holder(const std::string& folder, bool membarrier, bool foreign) {
  Child child([&](Child& self) {
    int entries = 0;
    Options options;
    options.membarrier = membarrier;
    options.hooks.inside_pin = [&] {
      if (++entries == 10) ::raise(SIGSTOP);
    };
    Initiator initiator(self, folder, options);
    initiator.write_on(std::byte{0x5a}, 4096);
    self.tell('e');  // its writes are refused
    for (;;) initiator.host.turn();
  });
  Options options;
  options.membarrier = membarrier;
  TestHost host("parent", folder, options);
  std::vector<std::byte> memory(kRegionBytes);
  auto region = foreign ? host.add_foreign(memory) : host.allocate(kRegionBytes);
  child.tell(invite(host, *region));
  ASSERT_TRUE(turn_until({&host}, [&] {
    int status = 0;
    return ::waitpid(child.process(), &status, WUNTRACED | WNOHANG) == child.process() && WIFSTOPPED(status);
  }));

  host.regions().close(region->index, region->generation);
  std::string holder;
  const auto is_quiet = [&] { return host.port().region_quiet(region->index, region->generation, &holder); };
  EXPECT_FALSE(is_quiet());
  EXPECT_EQ(holder, base::format("child (process {})", child.process()));
  EXPECT_FALSE(turn_until({&host}, is_quiet, milliseconds(20)));

  child.signal(SIGCONT);
  ASSERT_TRUE(turn_until({&host}, is_quiet));
  std::memset(region->base, 0x11, region->size);
  ASSERT_TRUE(turn_until({&host}, [&] { return child.has_told(); }));
  EXPECT_EQ(child.hear<char>(), 'e');
  for (std::size_t i = 0; i < region->size; ++i) ASSERT_EQ(region->base[i], std::byte{0x11}) << i;
}

TEST_F(ShmProcess, AStoppedHolderKeepsAnArenaAndIsNamed) { run_stopped_holder(folder_.path(), true, false); }
TEST_F(ShmProcess, AStoppedHolderIsSeenWithFencesToo) { run_stopped_holder(folder_.path(), false, false); }
TEST_F(ShmProcess, AStoppedHolderKeepsForeignMemory) { run_stopped_holder(folder_.path(), true, true); }

TEST_F(ShmProcess, AViewOfAStoppedHolderIsWaitedForAndADeadOneHoldsNothing) {
  Child child([&](Child& self) {
    Initiator initiator(self, folder_.path());
    std::unique_ptr<View> view;
    const auto has_it = [&] {
      auto made = initiator.path->view(*initiator.target);
      if (made) view = std::move(*made);
      return view != nullptr;
    };
    if (!turn_until({&initiator.host}, has_it)) ::_exit(4);
    self.tell('v');
    ::raise(SIGSTOP);
    for (;;) initiator.host.turn();
  });
  TestHost host("parent", folder_.path());
  auto region = host.allocate(kRegionBytes);
  meet(host, child, *region);
  ASSERT_TRUE(turn_until({&host}, [&] { return child.has_told(); }));
  child.wait_stopped();
  host.regions().close(region->index, region->generation);
  std::string holder;
  const auto is_quiet = [&] { return host.port().region_quiet(region->index, region->generation, &holder); };
  EXPECT_FALSE(turn_until({&host}, is_quiet, milliseconds(20)));
  EXPECT_EQ(holder, base::format("child (process {})", child.process()));
  child.signal(SIGKILL);
  EXPECT_TRUE(turn_until({&host}, is_quiet));
}

TEST_F(ShmProcess, AStoppedHolderStaysAHolderWhenItsPathIsReleased) {
  Child child([&](Child& self) {
    Options options;
    options.hooks.inside_pin = [] { ::raise(SIGSTOP); };
    Initiator initiator(self, folder_.path(), options);
    initiator.write_on(std::byte{0x5a}, 4096);
    for (;;) initiator.host.turn();
  });
  TestHost host("parent", folder_.path());
  auto region = host.allocate(kRegionBytes);
  child.tell(invite(host, *region));
  ASSERT_TRUE(turn_until({&host}, [&] {
    int status = 0;
    return ::waitpid(child.process(), &status, WUNTRACED | WNOHANG) == child.process() && WIFSTOPPED(status);
  }));
  host.port().release_path(host.inbound);
  host.regions().close(region->index, region->generation);
  std::string holder;
  const auto is_quiet = [&] { return host.port().region_quiet(region->index, region->generation, &holder); };
  EXPECT_FALSE(turn_until({&host}, is_quiet, milliseconds(20)));
  child.signal(SIGKILL);
  EXPECT_TRUE(turn_until({&host}, is_quiet));
}

TEST_F(ShmProcess, WritersThatRunWhileTheirRegionClosesNeverWriteAfterwards) {
  for (int round = 0; round < 30; ++round) {
    Child child([&](Child& self) {
      Initiator initiator(self, folder_.path());
      initiator.write_on(std::byte{0x5a}, round % 2 == 0 ? 64 : 65536);
      self.tell('e');
      for (;;) initiator.host.turn();
    });
    TestHost host("parent", folder_.path());
    auto region = host.allocate(65536);
    meet(host, child, *region);
    ASSERT_TRUE(turn_until({&host}, [&] { return region->base[0] == std::byte{0x5a}; }));
    host.regions().close(region->index, region->generation);
    ASSERT_TRUE(
        turn_until({&host}, [&] { return host.port().region_quiet(region->index, region->generation, nullptr); }));
    std::memset(region->base, 0x11, region->size);
    ASSERT_TRUE(turn_until({&host}, [&] { return child.has_told(); }));
    for (std::size_t i = 0; i < region->size; ++i) ASSERT_EQ(region->base[i], std::byte{0x11}) << i;
  }
}

/// The child is the target; the parent's chunks end when it dies. `*took` gets how long that took.
void run_killed_target(const std::string& folder, bool foreign, Duration* took) {
  Child child([&](Child& self) {
    TestHost host("child", folder);
    std::vector<std::byte> memory(kRegionBytes);
    auto region = foreign ? host.add_foreign(memory) : host.allocate(kRegionBytes);
    self.tell(invite(host, *region));
    for (;;) host.turn();
  });
  TestHost host("parent", folder);
  const auto invitation = child.hear<ProcessInvitation>();
  Path* path = host.open({.peer = "child",
                          .incarnation = invitation.incarnation,
                          .address = {invitation.address, invitation.address_size},
                          .supersedes = {},
                          .deadline = Instant::max()});
  ASSERT_TRUE(turn_until({&host}, [&] { return host.ups.contains(path); }));
  Binding* target = path->bind(invitation.region).value();
  std::vector<std::byte> source(kRegionBytes, std::byte{1});
  const Piece piece{source.data(), 0, source.size()};
  ASSERT_TRUE(transfer(host, host, path, chunk_of(Operation::kWrite, target, {&piece, 1}, 1)).ok());
  std::vector<Chunk> chunks;
  for (std::uint64_t i = 0; i < 60; ++i) chunks.push_back(chunk_of(Operation::kWrite, target, {&piece, 1}, 100 + i));
  ASSERT_EQ(path->submit(chunks, Instant()).taken, 60u);
  host.turn();
  child.signal(SIGKILL);
  child.wait_dead();  // Else all chunks may be through before it got a processor to die on.
  const Instant start = Clock::steady().now();
  ASSERT_TRUE(turn_until({&host}, [&] { return host.downs.contains(path); }));
  *took = Clock::steady().now() - start;
  for (std::uint64_t i = 0; i < 60; ++i) ASSERT_TRUE(host.done.contains(100 + i));
  EXPECT_EQ(host.done[159].code(), Code::kDisconnected);
  EXPECT_EQ(host.downs[path].scope(), Scope::kPeer);
  EXPECT_EQ(host.downs[path].peer(), "child");
}

void expect_killed_target_noticed(const std::string& folder, bool foreign) {
  constexpr int kTries = 4;
  Duration best = Duration::max();
  for (int attempt = 0; attempt < kTries && best > kDeathNoticed; ++attempt) {
    Duration took{};
    run_killed_target(folder, foreign, &took);
    if (::testing::Test::HasFatalFailure()) return;
    best = std::min(best, took);
  }
  EXPECT_LE(best, kDeathNoticed);
}

TEST_F(ShmProcess, AKilledTargetEndsAllChunks) { expect_killed_target_noticed(folder_.path(), false); }
TEST_F(ShmProcess, AKilledForeignTargetEndsAllChunks) { expect_killed_target_noticed(folder_.path(), true); }

TEST_F(ShmProcess, APeerThatRunsAnotherProgramIsGone) {
  Child child([&](Child& self) {
    Initiator initiator(self, folder_.path());
    self.hear<char>();
    ::execlp("sleep", "sleep", "30", nullptr);
  });
  TestHost host("parent", folder_.path());
  auto region = host.allocate(4096);
  meet(host, child, *region);
  child.tell('x');
  EXPECT_LE(time_to_down(host), Duration(std::chrono::seconds(1)));  // exec itself takes its time
  EXPECT_EQ(host.downs[host.inbound].code(), Code::kDisconnected);
}

TEST_F(ShmProcess, SocketsOfTheDeadAreSweptAMinuteAfterTheyWereFound) {
  const auto count_files = [&] {
    int count = 0;
    DIR* directory = ::opendir(folder_.path().c_str());
    while (const dirent* entry = ::readdir(directory)) count += entry->d_name[0] != '.' ? 1 : 0;
    ::closedir(directory);
    return count;
  };
  {
    Child child([&](Child& self) {
      TestHost host("child", folder_.path());
      self.tell('r');
      for (;;) host.turn();
    });
    child.hear<char>();
    EXPECT_EQ(count_files(), 2);
    TestHost beside("beside", folder_.path());
    EXPECT_EQ(count_files(), 4);  // the living stay
  }
  EXPECT_EQ(count_files(), 2);
  {
    TestHost host("parent", folder_.path());
    EXPECT_EQ(count_files(), 4);  // For a minute from now the socket proves the death.
    host.close();
  }
  EXPECT_EQ(count_files(), 2);
  const timespec then{std::time(nullptr) - 120, 0};
  const std::array<timespec, 2> times{then, then};
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    ASSERT_EQ(::utimensat(AT_FDCWD, entry.path().c_str(), times.data(), 0), 0);
  }
  TestHost host("parent", folder_.path());
  EXPECT_EQ(count_files(), 2);
  host.close();
  EXPECT_EQ(count_files(), 0);
}

/// Descriptors of shm that are open in this process.
int count_descriptors() {
  int count = 0;
  DIR* directory = ::opendir("/proc/self/fd");
  while (const dirent* entry = ::readdir(directory)) {
    char link[128] = {};
    const std::string path = base::format("/proc/self/fd/{}", entry->d_name);
    if (::readlink(path.c_str(), link, sizeof link - 1) <= 0) continue;
    for (const char* mark :
         {"hawser-gates", "hawser-link", "socket:", "[eventfd]", "[eventpoll]", "[pidfd]", ".lock"}) {
      if (std::strstr(link, mark) != nullptr) ++count;
    }
  }
  ::closedir(directory);
  return count;
}

TEST_F(ShmProcess, AForkedChildKeepsNoDescriptor) {
  const int before = count_descriptors();
  TestHost a("alice", folder_.path());
  TestHost b("bob", folder_.path());
  Path* path = connect(a, b);
  EXPECT_GT(count_descriptors(), before + 10);
  Child child([&](Child& self) {
    a.backend().disown_after_fork();
    b.backend().disown_after_fork();
    self.tell(count_descriptors());
    self.hear<char>();
  });
  EXPECT_EQ(child.hear<int>(), before);
  ASSERT_TRUE(path->send(Priority::kBulk, bytes_of("still here"), {}));
  ASSERT_TRUE(turn_until({&a, &b}, [&] { return b.messages.size() == 1; }));
  child.tell('x');
}

}  // namespace
}  // namespace hawser::backend::shm
