// Peers that do not keep to the protocol, that live in another namespace, or run in another thread.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>

#include "backend/shm/link.h"
#include "backend/shm/packet.h"
#include "backend/shm/test_host.h"
#include "base/bytes.h"

namespace hawser::backend::shm {
namespace {

/// The other end of a path, made by hand.
class RawPeer {
 public:
  RawPeer(TestHost& host, const std::string& path) : host_(host), socket_(connect_to(path).value()) {
    open_.ring_bytes = 4096;
    open_.hello.name = "mallory";
    open_.hello.incarnation = base::random_id128();
    open_.hello.session = base::random_id128();
    gates_ = Gates::make(forks_, false).value();
    link_ = Link::make(open_.ring_bytes, &link_fd_).value();
    for (base::Fd& door : doors_) door = base::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  }

  void send(std::string_view bytes, std::span<const int> fds = {}) {
    EXPECT_EQ(send_packet(socket_.get(), base::as_bytes(bytes), fds), Io::kDone);
  }
  std::vector<int> fds() const { return {link_fd_.get(), gates_->peer_fd(), doors_[0].get(), doors_[1].get()}; }
  /// What the host says next.
  Result<Control> hear() {
    Packet packet;
    Io io = Io::kAgain;
    turn_until({&host_}, [&] { return (io = receive_packet(socket_.get(), &packet)) != Io::kAgain; });
    if (io != Io::kDone) return Status(Code::kDisconnected, "the host hung up");
    return decode_control(packet.bytes());
  }
  Code refusal() {
    const auto answer = hear();
    return answer && std::holds_alternative<Accept>(*answer) ? std::get<Accept>(*answer).hello.status : Code::kOk;
  }
  void become_path() {
    send(encode(open_), fds());
    ASSERT_TRUE(turn_until({&host_}, [&] { return host_.inbound != nullptr; }));
  }
  Open& open() { return open_; }
  Link& link() { return link_; }

 private:
  TestHost& host_;
  ForkList forks_;
  base::Fd socket_;
  Open open_;
  std::unique_ptr<Gates> gates_;
  base::Fd link_fd_;
  Link link_;
  base::Fd doors_[2];
};

class ShmHostile : public ::testing::Test {
 protected:
  std::string place() { return host_.backend().readable_address(); }
  void expect_down(Code code) {
    ASSERT_TRUE(turn_until({&host_}, [&] { return host_.downs.contains(host_.inbound); }));
    EXPECT_EQ(host_.downs[host_.inbound].code(), code) << host_.downs[host_.inbound].to_string();
    EXPECT_EQ(host_.downs[host_.inbound].peer(), "mallory");
    TestHost friendly("friend", folder_.path());
    connect(friendly, host_);  // others are served
  }
  TestFolder folder_;
  TestHost host_{"host", folder_.path()};
};

TEST_F(ShmHostile, WrongGreetingsAreRefused) {
  RawPeer(host_, place()).send("garbage");  // and hangs up
  {
    RawPeer peer(host_, place());
    peer.send("garbage");
    EXPECT_EQ(peer.refusal(), Code::kCorrupt);
  }
  {
    RawPeer peer(host_, place());
    peer.send(encode(Bind{1, 0, 1, {}}));
    EXPECT_EQ(peer.refusal(), Code::kCorrupt);
  }
  {
    RawPeer peer(host_, place());
    peer.send(encode(peer.open()));
    EXPECT_EQ(peer.refusal(), Code::kCorrupt);
  }
  {
    RawPeer peer(host_, place());
    peer.open().hello.expects = base::random_id128();
    peer.send(encode(peer.open()), peer.fds());
    EXPECT_EQ(peer.refusal(), Code::kDisconnected);
  }
  EXPECT_EQ(host_.inbound, nullptr);
}

TEST_F(ShmHostile, WrongDescriptorsAreRefused) {
  const base::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const base::Fd blocking(::eventfd(0, EFD_CLOEXEC));
  for (std::size_t i = 0; i < 4; ++i) {
    RawPeer peer(host_, place());
    auto fds = peer.fds();
    fds[i] = i < 2 ? null.get() : blocking.get();
    peer.send(encode(peer.open()), fds);
    EXPECT_EQ(peer.refusal(), Code::kCorrupt) << i;
  }
  RawPeer peer(host_, place());
  peer.open().ring_bytes = 8192;  // not what the link has
  peer.send(encode(peer.open()), peer.fds());
  EXPECT_EQ(peer.refusal(), Code::kCorrupt);
}

TEST_F(ShmHostile, SilentVisitorsKeepNobodyOut) {
  std::vector<base::Fd> silent;
  for (int i = 0; i < 300; ++i) {
    silent.push_back(connect_to(place()).value());
    if (i % 10 == 0) host_.turn();
  }
  TestHost friendly("friend", folder_.path());
  connect(friendly, host_);
}

TEST_F(ShmHostile, WithoutDescriptorsVisitorsAreToldSo) {
  TestHost friendly("friend", folder_.path());
  Path* path = friendly.open(friendly.target(host_));
  std::vector<base::Fd> all;
  for (base::Fd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); fd;
       fd.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC))) {
    all.push_back(std::move(fd));
    if (all.size() > 100000) GTEST_SKIP() << "no limit to reach";
  }
  turn_until(
      {&host_}, [] { return false; }, std::chrono::milliseconds(5));
  EXPECT_TRUE(host_.port().prepare_sleep()) << "nobody waits, and the socket is quiet";
  EXPECT_TRUE(turn_until({&host_, &friendly}, [&] { return friendly.downs.contains(path); }));
  all.clear();
  EXPECT_EQ(friendly.downs[path].code(), Code::kBusy) << friendly.downs[path].to_string();
  EXPECT_NE(friendly.downs[path].to_string().find("RLIMIT_NOFILE"), std::string::npos);
  connect(friendly, host_);
}

TEST_F(ShmHostile, ARingOfGarbageEndsThePathOnly) {
  RawPeer peer(host_, place());
  peer.become_path();
  // A message of a kind that does not exist.
  auto producer = peer.link().producer();
  ASSERT_EQ(producer.put(static_cast<RecordKind>(9), base::as_bytes("x"), {}), Put::kDone);
  expect_down(Code::kCorrupt);
}

TEST_F(ShmHostile, EndlessFragmentsEndThePath) {
  RawPeer peer(host_, place());
  peer.become_path();
  auto producer = peer.link().producer();
  const std::vector<std::byte> part(producer.record_max());
  EXPECT_TRUE(turn_until({&host_}, [&] {
    producer.put(RecordKind::kFragment, part, {});
    return host_.downs.contains(host_.inbound);
  }));
  expect_down(Code::kCorrupt);
}

TEST_F(ShmHostile, WrongPacketsEndThePath) {
  Open again;
  again.ring_bytes = 4096;
  again.hello.name = "mallory";
  for (const std::string& packet : {std::string("garbage"), encode(Bound{}), encode(again), std::string(5000, 'x')}) {
    host_.inbound = nullptr;
    RawPeer peer(host_, place());
    peer.become_path();
    peer.send(packet);
    expect_down(Code::kCorrupt);
  }
}

TEST_F(ShmHostile, AFloodOfRequestsIsAnsweredInOrder) {
  RawPeer peer(host_, place());
  peer.become_path();
  ASSERT_TRUE(peer.hear());
  auto region = host_.allocate(4096);
  std::uint32_t sent = 0;
  std::uint32_t heard = 0;
  for (; sent < 3000; ++sent) {
    const std::string bytes =
        encode(Bind{sent, region->index, region->generation, sent % 2 ? region->key : base::Id128{}});
    peer.send(bytes);
    if (sent % 50 != 49) continue;
    for (; heard <= sent; ++heard) {
      const auto answer = peer.hear();
      ASSERT_TRUE(answer);
      const auto& bound = std::get<Bound>(*answer);
      EXPECT_EQ(bound.request, heard);
      EXPECT_EQ(bound.code, heard % 2 ? Code::kOk : Code::kDenied);
    }
  }
}

// A process in a process-id namespace of its own does not see who is outside: it maps, but does not attach.
TEST_F(ShmHostile, AnotherProcessNamespaceMapsButDoesNotAttach) {
  auto arena = host_.allocate(4096);
  std::vector<std::byte> memory(4096);
  auto foreign = host_.add_foreign(memory);
  RemoteRegionRef arena_ref = host_.ref(*arena);
  RemoteRegionRef foreign_ref = host_.ref(*foreign);
  const std::string folder = folder_.path();
  const PathTarget target{"host", host_.identity().incarnation, "", {}, Instant::max()};
  const std::string address = host_.backend().address();
  const pid_t outer = ::fork();
  if (outer == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(77);
    const pid_t inner = ::fork();
    if (inner != 0) {
      int status = 0;
      ::waitpid(inner, &status, 0);
      ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
    }
    TestHost host("inside", folder);
    PathTarget to = target;
    to.address = address;
    Path* path = host.open(to);
    if (!turn_until({&host}, [&] { return host.ups.contains(path); })) ::_exit(1);
    const auto refused = path->bind(foreign_ref);
    if (refused || refused.error().code() != Code::kUnsupported) ::_exit(2);
    if (refused.error().message().find("namespace") == std::string_view::npos) ::_exit(3);
    std::byte source[64] = {std::byte{9}};
    const Piece piece{source, 0, sizeof source};
    const Status status =
        transfer(host, host, path, chunk_of(Operation::kWrite, path->bind(arena_ref).value(), {&piece, 1}, 1));
    ::_exit(status.ok() ? 0 : 4);
  }
  int status = 0;
  ASSERT_TRUE(turn_until({&host_}, [&] { return ::waitpid(outer, &status, WNOHANG) == outer; }));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no right to make a process-id namespace";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(arena->base[0], std::byte{9});
}

/// Runs `inside` in a process with a mount namespace of its own; its answer is the exit status, 77 when it cannot be.
int in_mount_namespace(TestHost& outside, const std::function<int()>& inside) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::unshare(CLONE_NEWNS) != 0) ::_exit(77);
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(77);
    ::_exit(inside());
  }
  int status = 0;
  EXPECT_TRUE(turn_until({&outside}, [&] { return ::waitpid(child, &status, WNOHANG) == child; }));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

// Containers that share the folder of sockets: file systems are others, processes and memory are the same.
TEST_F(ShmHostile, AnotherMountNamespaceIsReachedThroughASharedFolder) {
  auto arena = host_.allocate(4096);
  std::vector<std::byte> memory(4096);
  auto foreign = host_.add_foreign(memory);
  const RemoteRegionRef arena_ref = host_.ref(*arena), foreign_ref = host_.ref(*foreign);
  const std::string folder = folder_.path();
  const std::string address = host_.backend().address();
  const int answer = in_mount_namespace(host_, [&] {
    // All of it is elsewhere but for what is mounted in.
    if (::mount(folder.c_str(), "/mnt", nullptr, MS_BIND, nullptr) != 0) return 77;
    if (::mount("none", "/tmp", "tmpfs", 0, nullptr) != 0) return 77;
    std::filesystem::create_directories(folder);
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
    if (::mount("/mnt", folder.c_str(), nullptr, MS_BIND, nullptr) != 0) return 77;
    TestHost host("inside", folder);
    Path* path = host.open({"host", host_.identity().incarnation, address, {}, Instant::max()});
    if (!turn_until({&host}, [&] { return host.ups.contains(path); })) return 1;
    std::byte source[64] = {std::byte{9}};
    const Piece piece{source, 0, sizeof source};
    for (const RemoteRegionRef& ref : {arena_ref, foreign_ref}) {
      auto bound = path->bind(ref);
      if (!bound && bound.error().message().find("namespace") != std::string_view::npos) return 2;
      if (!bound) return 78;  // No cross-memory attach on this machine.
      const Chunk chunk = chunk_of(Operation::kWrite, *bound, {&piece, 1}, 1);
      if (!transfer(host, host, path, chunk).ok()) return 3;
    }
    return 0;
  });
  if (answer == 77) GTEST_SKIP() << "no right to make a mount namespace";
  ASSERT_TRUE(answer == 0 || answer == 78) << answer;
  EXPECT_EQ(arena->base[0], std::byte{9});
  EXPECT_EQ(memory[0], answer == 0 ? std::byte{9} : std::byte{0});
}

TEST_F(ShmHostile, AnotherMountNamespaceWithoutTheFolderIsToldSo) {
  const std::string address = host_.backend().address();
  const int answer = in_mount_namespace(host_, [&] {
    if (::mount("none", "/tmp", "tmpfs", 0, nullptr) != 0) return 77;
    const TestFolder own;
    TestHost host("inside", own.path());
    Path* path = host.open({"host", host_.identity().incarnation, address, {}, Instant::max()});
    if (!turn_until({&host}, [&] { return host.downs.contains(path); })) return 1;
    const Status why = host.downs[path];
    if (why.code() != Code::kUnsupported) return 2;  // Unreachable is not dead.
    return why.to_string().find("mount the folder of that socket") != std::string::npos ? 0 : 3;
  });
  if (answer == 77) GTEST_SKIP() << "no right to make a mount namespace";
  EXPECT_EQ(answer, 0);
}

TEST_F(ShmHostile, TwoThreadsTalkAndCopy) {
  auto region = host_.allocate(1 << 20);
  const std::string address = host_.backend().address();
  const RemoteRegionRef ref = host_.ref(*region);
  std::atomic<bool> is_done{false};
  std::thread other([&] {
    TestHost peer("peer", folder_.path());
    Path* path = peer.open({"host", {}, address, {}, Instant::max()});
    EXPECT_TRUE(turn_until({&peer}, [&] { return peer.ups.contains(path); }));
    Binding* target = path->bind(ref).value();
    std::vector<std::byte> source(100000, std::byte{3});
    const Piece piece{source.data(), 0, source.size()};
    for (int i = 0; i < 200; ++i) {
      EXPECT_TRUE(transfer(peer, peer, path, chunk_of(Operation::kWrite, target, {&piece, 1}, 1)).ok());
      EXPECT_TRUE(turn_until({&peer}, [&] { return path->send(Priority::kBulk, base::as_bytes("done"), {}); }));
    }
    is_done = true;
    turn_until({&peer}, [&] { return peer.downs.contains(path); });
  });
  EXPECT_TRUE(turn_until({&host_}, [&] { return is_done && host_.messages.size() == 200; }));
  host_.regions().close(region->index, region->generation);
  EXPECT_TRUE(
      turn_until({&host_}, [&] { return host_.port().region_quiet(region->index, region->generation, nullptr); }));
  host_.port().begin_close(Clock::steady().now());
  EXPECT_TRUE(turn_until({&host_}, [&] { return host_.port().idle(); }));
  other.join();
}

}  // namespace
}  // namespace hawser::backend::shm
