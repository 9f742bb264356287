// The tcp backend over real sockets and processes: addresses, families, refusals, garbage, death and standstill.

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/places/locator.h"
#include "backend/tcp/factory.h"
#include "base/fd.h"
#include "base/id128.h"
#include "tcp_end.h"

namespace hawser::backend {
namespace {

bool has_ipv6() {
  const base::Fd fd(::socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  return fd && ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
}

/// A network namespace and a name server of its own that says nothing. Ends the process with 77 where that may not be.
void enter_silent_network() {
  if (::unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) ::_exit(77);
  const std::string config = "/tmp/hawser-resolv." + std::to_string(::getpid());
  const base::Fd file(::open(config.c_str(), O_CREAT | O_WRONLY | O_EXCL, 0644));
  constexpr std::string_view kText = "nameserver 127.0.0.1\n";
  if (!file || ::write(file.get(), kText.data(), kText.size()) < 0) ::_exit(77);
  const bool is_ours = ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                       ::mount(config.c_str(), "/etc/resolv.conf", nullptr, MS_BIND, nullptr) == 0;
  ::unlink(config.c_str());
  if (!is_ours) ::_exit(77);
  const base::Fd any(::socket(AF_INET, SOCK_DGRAM, 0));
  ifreq up = {};
  std::snprintf(up.ifr_name, sizeof(up.ifr_name), "lo");
  up.ifr_flags = IFF_UP;
  if (::ioctl(any.get(), SIOCSIFFLAGS, &up) != 0) ::_exit(77);
  // So that the C library thinks it has a network to ask about.
  std::snprintf(up.ifr_name, sizeof(up.ifr_name), "lo:1");
  const sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = 0, .sin_addr = {.s_addr = htonl(0x0a630001)}, .sin_zero = {}};
  std::memcpy(&up.ifr_addr, &address, sizeof(address));
  if (::ioctl(any.get(), SIOCSIFADDR, &up) != 0) ::_exit(77);
}

int exit_code_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

// The first in this file: a child of a process whose C library has helper threads for look-ups believes in them, too.
TEST(TrialsTcp, ANameServerThatDoesNotAnswerTakesTheTimeAsked) {
#ifdef HAWSER_SANITIZE_THREAD
  GTEST_SKIP() << "getaddrinfo_a runs in a thread that ThreadSanitizer does not see being made, and crashes there";
#endif
  const pid_t child = ::fork();
  if (child == 0) {
    enter_silent_network();
    const base::Fd silent(::socket(AF_INET, SOCK_DGRAM, 0));
    const sockaddr_in dns = {
        .sin_family = AF_INET, .sin_port = htons(53), .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    if (::bind(silent.get(), reinterpret_cast<const sockaddr*>(&dns), sizeof(dns)) != 0) ::_exit(77);
    int wrong = 0;
    // As often as the C library has threads for, and more: those it cannot cancel are not waited for either.
    for (int i = 0; i < 3; ++i) {
      const Instant from = now();
      const auto found = resolve_tcp_address("peer" + std::to_string(i) + ".example:7000", milliseconds(300));
      const Duration took = now() - from;
      if (found || found.error().code() != Code::kTimedOut) wrong |= 1;
      if (took < milliseconds(290)) wrong |= 2;
      if (took > seconds(2)) wrong |= 4;
    }
    pollfd asked = {.fd = silent.get(), .events = POLLIN, .revents = 0};
    if (::poll(&asked, 1, 0) != 1) wrong |= 8;
    ::_exit(wrong);
  }
  const int code = exit_code_of(child);
  if (code == 77) GTEST_SKIP() << "no network namespace and mounts of its own for a test (needs root)";
  EXPECT_EQ(code, 0) << "1: no time-out was told, 2: too early, 4: too late, 8: nobody asked the name server";
}

class Families : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(Families, MoveBytesBothWays) {
  const std::string listen = std::get<0>(GetParam());
  if (listen.find(':') != std::string::npos && !has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  const Params params = {{"listen", listen}, {"connections", std::get<1>(GetParam())}};
  End a("a", params), b("b", params);
  ASSERT_TRUE(b.status.ok()) << b.status.to_string();
  const std::string readable = b.backend->readable_address();
  EXPECT_EQ(listen.find("::1") != std::string::npos, readable.find("[::1]:") != std::string::npos) << readable;
  Path* path = a.open("b", b.backend->address(), b.identity.incarnation);
  ASSERT_NE(path, nullptr);
  ASSERT_TRUE(run({&a, &b}, [&] { return a.up.size() == 1 && b.up.size() == 1; }));
  std::fill_n(a.memory.begin(), 1 << 20, std::byte{0x11});
  std::fill_n(b.memory.begin() + (1 << 20), 1 << 20, std::byte{0x22});
  const Piece written{a.memory.data(), 0, 1 << 20};
  const Piece read{a.memory.data() + (1 << 20), 1 << 20, 1 << 20};
  const Chunk chunks[] = {chunk_of(Operation::kWrite, written, bind(path, b)),
                          chunk_of(Operation::kRead, read, bind(path, b))};
  ASSERT_EQ(path->submit(chunks, now()).taken, 2u);
  send_text(path, "hello");
  ASSERT_TRUE(run({&a, &b}, [&] { return a.done.size() == 2 && b.messages.size() == 1; }));
  EXPECT_TRUE(a.done[0].ok() && a.done[1].ok());
  EXPECT_TRUE(std::equal(a.memory.begin(), a.memory.begin() + (2 << 20), b.memory.begin()));
  EXPECT_EQ(b.messages[0], "hello");
  a.port->release_path(path);
  ASSERT_TRUE(run({&a, &b}, [&] { return b.down.size() == 1; }));
}

INSTANTIATE_TEST_SUITE_P(Tcp, Families,
                         testing::Combine(testing::Values("127.0.0.1", "::1", "127.0.0.1,::1"),
                                          testing::Values("1", "2", "4")));

// A time-out said only that time was over. The peer does not turn, so what the kernels take is there and unread.
TEST(Trials, ATimeOutOverTcpTellsOfItsConnectionsAndClosesNone) {
  End a("a", {{"listen", "127.0.0.1"}}), b("b", {{"listen", "127.0.0.1"}});
  b.identity.driven = false;
  Path* path = a.open("b", b.backend->address(), b.identity.incarnation);
  ASSERT_NE(path, nullptr);
  ASSERT_TRUE(run({&a, &b}, [&] { return a.up.size() == 1 && b.up.size() == 1; }));
  const Piece written{a.memory.data(), 0, 4 << 20};
  const Chunk chunk = chunk_of(Operation::kWrite, written, bind(path, b));
  std::size_t asked = 0;
  while (path->submit({&chunk, 1}, now()).taken == 1) ++asked;
  ASSERT_EQ(asked, 16u);
  const Instant began = now();
  ASSERT_FALSE(run(
      {&a}, [] { return false; }, milliseconds(50)));
  const std::string known(path->condition(now()).message());
  for (const char* word :
       {"16 chunks of 67108864 bytes in flight", "64 MiB of bulk", "the peer's last word came", "connection 1: MSS ",
        "segments unacknowledged", "retransmitted", "bytes in its send queue"}) {
    EXPECT_NE(known.find(word), std::string::npos) << word << " is not in: " << known;
  }
  path->cancel(1);
  ASSERT_TRUE(run({&a}, [&] { return a.done.size() == asked; }));
  EXPECT_LT(now() - began, seconds(5));
  std::fill(a.memory.begin(), a.memory.end(), std::byte{0x77});  // Its memory is quiet.
  ASSERT_FALSE(run(
      {&a}, [] { return false; }, seconds(3)));  // The path ended after two.
  EXPECT_TRUE(a.down.empty()) << a.down[0].to_string();
  const Piece small{a.memory.data(), 0, 8};
  const Chunk next = chunk_of(Operation::kWrite, small, bind(path, b));
  EXPECT_EQ(path->submit({&next, 1}, now()).taken, 0u) << "late bytes would land on it";
  ASSERT_TRUE(run({&a, &b}, [&] { return path->submit({&next, 1}, now()).taken == 1; }));
  ASSERT_TRUE(run({&a, &b}, [&] { return a.done.size() == asked + 1; }));
  EXPECT_TRUE(a.done.back().ok()) << a.done.back().to_string();
  EXPECT_EQ(std::count(b.memory.begin(), b.memory.end(), std::byte{0x77}), 8);
}

TEST(Tcp, APortInUseIsNamed) {
  End a("a", {{"listen", "127.0.0.1"}});
  const std::string address = a.backend->readable_address();
  const std::string port = address.substr(address.find(':') + 1);
  End b("b", {{"listen", "127.0.0.1"}, {"port", port}});
  EXPECT_EQ(b.status.code(), Code::kBusy);
  EXPECT_NE(b.status.message().find("port " + port), std::string_view::npos) << b.status.to_string();
}

TEST(Tcp, ListeningBeyondTheHostMustBeAskedFor) {
  for (const Security security : {Security::kDefault, Security::kNone, Security::kAuthenticate, Security::kEncrypt}) {
    End quiet("a", {}, security);
    ASSERT_TRUE(quiet.status.ok()) << quiet.status.to_string();
    const Locator locator = parse_locator(quiet.backend->address()).value();
    EXPECT_TRUE(std::ranges::all_of(locator.places, [](const auto& place) { return base::is_loopback(place); }));
    EXPECT_EQ(locator.is_covered, security == Security::kEncrypt);
    End open("a", {{"listen", "0.0.0.0"}}, security);
    ASSERT_TRUE(open.status.ok()) << open.status.to_string();
    EXPECT_EQ(open.backend->address().find("0.0.0.0"), std::string::npos);
  }
}

TEST(Tcp, BytesInClearLeaveTheHostOnlyWhereThatIsAskedFor) {
  End end("a", {});
  for (const Security security : {Security::kDefault, Security::kNone, Security::kAuthenticate, Security::kEncrypt}) {
    const bool may_leave = security == Security::kNone || security == Security::kAuthenticate;
    Context context = *end.context;
    context.security = security;
    const auto beyond = open_tcp_door({{"listen", "0.0.0.0"}}, context);
    EXPECT_EQ(beyond.error().code(), may_leave ? Code::kOk : Code::kDenied);
    if (!may_leave) {
      EXPECT_NE(beyond.error().advice().find("authenticate"), std::string::npos);
    }
    const auto within = open_tcp_door({}, context);
    ASSERT_TRUE(within) << within.error().to_string();
    EXPECT_EQ(within->reachable("10.1.2.3:5").code(), may_leave ? Code::kOk : Code::kDenied);
  }
}

TEST(Tcp, AllAddressesOfAnyAreTried) {
  End a("a", {}, Security::kNone), b("b", {{"listen", "0.0.0.0"}}, Security::kNone);
  Locator locator = parse_locator(b.backend->address()).value();
  ASSERT_FALSE(locator.places.empty());
  std::reverse(locator.places.begin(), locator.places.end());
  base::SocketAddress nobody = locator.places[0];
  {
    const End gone("gone", {{"listen", "127.0.0.1"}});
    nobody = parse_locator(gone.backend->address()).value().places[0];
  }
  locator.places.insert(locator.places.begin(), nobody);
  ASSERT_NE(a.open("b", to_string(locator)), nullptr);
  ASSERT_TRUE(run({&a, &b}, [&] { return a.up.size() == 1; })) << to_string(locator);
}

TEST(Tcp, WhatListensForAnotherHostIsOutOfReach) {
  End a("a", {});
  const std::string address = "0123456789abcdef@127.0.0.1:4000";
  const Status status = a.backend->reachable(address);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(status.advice(), "");
  EXPECT_EQ(a.open("b", address), nullptr);
  EXPECT_TRUE(a.backend->reachable("10.1.2.3:5").ok());
  for (const char* wrong : {"", "@", "x@127.0.0.1:5", "127.0.0.1", "127.0.0.1:0", "name:5", "127.0.0.1:5,"}) {
    EXPECT_EQ(a.backend->reachable(wrong).ok(), std::string_view(wrong) == "127.0.0.1:5,") << wrong;
  }
}

TEST(Tcp, RefusedMeansThePeerIsGone) {
  std::string address;
  {
    const End gone("gone", {});
    address = gone.backend->address();
  }
  End a("a", {});
  ASSERT_NE(a.open("gone", address), nullptr);
  const Instant begin = now();
  ASSERT_TRUE(run({&a}, [&] { return a.down.size() == 1; }));
  EXPECT_LT(now() - begin, seconds(1));
  EXPECT_EQ(a.down[0].code(), Code::kDisconnected);
  EXPECT_EQ(a.down[0].scope(), Scope::kPeer);
}

TEST(Tcp, AnotherAgentAtTheAddressIsNoticed) {
  End a("a", {}), b("b", {});
  ASSERT_NE(a.open("c", b.backend->address()), nullptr);
  ASSERT_TRUE(run({&a, &b}, [&] { return a.down.size() == 1; }));
  EXPECT_EQ(a.down[0].scope(), Scope::kPath) << "that tells nothing of c: " << a.down[0].to_string();
  EXPECT_NE(a.down[0].to_string().find("'b'"), std::string::npos) << a.down[0].to_string();
  ASSERT_NE(a.open("b", b.backend->address(), base::random_id128()), nullptr);
  ASSERT_TRUE(run({&a, &b}, [&] { return a.down.size() == 2; }));
  EXPECT_NE(a.down[1].message().find("restarted"), std::string_view::npos);
  EXPECT_TRUE(b.up.size() <= 1);
}

base::Fd connect_raw(const End& end) {
  const auto place = parse_locator(end.backend->address()).value().places[0];
  base::Fd fd(::socket(place.family(), SOCK_STREAM, 0));
  EXPECT_EQ(::connect(fd.get(), place.get(), place.size), 0);
  return fd;
}

bool is_closed(const base::Fd& fd) {
  char byte = 0;
  const ssize_t got = ::recv(fd.get(), &byte, 1, MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN);
}

TEST(Tcp, GarbageClosesItsConnectionOnly) {
  End a("a", {}), b("b", {});
  ASSERT_NE(a.open("b", b.backend->address()), nullptr);
  ASSERT_TRUE(run({&a, &b}, [&] { return a.up.size() == 1; }));
  base::Rng rng(1);
  for (int i = 0; i < 50; ++i) {
    const base::Fd fd = connect_raw(b);
    std::vector<char> bytes(1 + rng.below(3000));
    for (char& byte : bytes) byte = static_cast<char>(rng.u64());
    if (i % 2 == 0) std::copy_n("HWSR", std::min<std::size_t>(4, bytes.size()), bytes.begin());
    static_cast<void>(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
    if (i % 3 == 0) ::shutdown(fd.get(), SHUT_WR);
    for (int turns = 0; turns < 5; ++turns) b.turn(now());
  }
  send_text(a.up[0], "still here");
  ASSERT_TRUE(run({&a, &b}, [&] { return b.messages.size() == 1; }));
  EXPECT_TRUE(a.down.empty());
}

TEST(Tcp, ConnectionsWithoutHelloAreFewAndShort) {
  End a("a", {}), b("b", {});
  std::vector<base::Fd> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(connect_raw(b));
  ASSERT_TRUE(run({&b}, [&] { return std::count_if(idle.begin(), idle.end(), is_closed) == 36; }));
  ASSERT_NE(a.open("b", b.backend->address()), nullptr);
  ASSERT_TRUE(run({&a, &b}, [&] { return a.up.size() == 1; }));
  for (int i = 0; i < 10; ++i) b.turn(now() + seconds(6));
  EXPECT_EQ(std::count_if(idle.begin(), idle.end(), is_closed), 100);
}

/// Takes all descriptors that this process may have but `left`.
std::vector<base::Fd> take_descriptors(std::size_t left) {
  std::vector<base::Fd> taken;
  while (true) {
    base::Fd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!fd) break;
    taken.push_back(std::move(fd));
  }
  taken.resize(taken.size() - std::min(left, taken.size()));
  return taken;
}

// Both ends are in this process, so the opener keeps one descriptor and the acceptor finds none.
TEST(TrialsTcp, WhoIsTurnedAwayForWantOfDescriptorsIsTold) {
#ifdef HAWSER_SANITIZE_ADDRESS_UNDEFINED
  GTEST_SKIP() << "this sanitizer's own checks need descriptors";
#endif
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit few = {.rlim_cur = 256, .rlim_max = limit.rlim_max};
  End a("a", {{"connections", "1"}}), b("b", {{"connections", "1"}});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<base::Fd> taken = take_descriptors(1);
  const Instant begin = now();
  EXPECT_NE(a.open("b", b.backend->address(), b.identity.incarnation), nullptr);
  const bool is_told = run(
      {&a, &b}, [&] { return a.down.size() == 1; }, seconds(3));
  const Duration took = now() - begin;
  // And the opener's own shortage.
  const std::vector<base::Fd> last = take_descriptors(0);
  const Path* path = a.open("b", b.backend->address(), b.identity.incarnation);
  const bool is_known = path == nullptr || run(
                                               {&a, &b}, [&] { return a.down.size() == 2; }, seconds(3));
  taken.clear();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_TRUE(is_told);
  EXPECT_LT(took, seconds(1));
  EXPECT_EQ(a.down[0].code(), Code::kBusy) << a.down[0].to_string();
  EXPECT_NE(a.down[0].to_string().find("RLIMIT_NOFILE"), std::string::npos) << a.down[0].to_string();
  ASSERT_TRUE(is_known && a.down.size() == 2);
  EXPECT_EQ(a.down[1].code(), Code::kBusy) << a.down[1].to_string();
  EXPECT_NE(a.down[1].to_string().find("RLIMIT_NOFILE = 256"), std::string::npos) << a.down[1].to_string();
  EXPECT_NE(a.down[1].scope(), Scope::kPeer);
}

TEST(Tcp, SleepsUntilSomethingComes) {
  End a("a", {}), b("b", {});
  ASSERT_NE(a.open("b", b.backend->address()), nullptr);
  ASSERT_TRUE(run({&a, &b}, [&] { return a.up.size() == 1 && b.up.size() == 1; }));
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(run({&a, &b}, [&] { return b.port->prepare_sleep(); }));
    pollfd wait = {.fd = b.port->wait_fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&wait, 1, 0), 0);
    send_text(a.up[0], "wake up");
    a.turn(now());
    ASSERT_EQ(::poll(&wait, 1, 5000), 1);
    const auto wanted = static_cast<std::size_t>(round + 1);
    ASSERT_TRUE(run({&b}, [&] { return b.messages.size() == wanted; }));
  }
}

/// A peer in a process of its own, which turns until it is killed.
struct Child {
  Child() {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid = ::fork();
    if (pid == 0) {
      End end("child", {});
      const std::string line = end.backend->address() + "\n";
      static_cast<void>(!::write(ends[1], line.data(), line.size()));
      while (true) end.turn(now());
    }
    ::close(ends[1]);
    for (char c = 0; ::read(ends[0], &c, 1) == 1 && c != '\n';) address += c;
    ::close(ends[0]);
  }
  ~Child() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  pid_t pid = 0;
  std::string address;
};

TEST(Tcp, ADeadProcessIsReportedAtOnce) {
  Child child;
  End a("a", {});
  Path* path = a.open("child", child.address);
  ASSERT_TRUE(run({&a}, [&] { return a.up.size() == 1; }));
  static_cast<void>(path);
  ::kill(child.pid, SIGKILL);
  const Instant killed = now();
  ASSERT_TRUE(run({&a}, [&] { return a.down.size() == 1; }));
  EXPECT_LT(now() - killed, milliseconds(500));
  EXPECT_EQ(a.down[0].code(), Code::kDisconnected);
  EXPECT_EQ(a.down[0].peer(), "child");
}

TEST(Tcp, AStoppedProcessIsSilentAfterThreeHeartbeatsAndGivenUpLater) {
  Child child;
  End a("a", {});
  Path* path = a.open("child", child.address);
  ASSERT_TRUE(run({&a}, [&] { return a.up.size() == 1; }));
  ::kill(child.pid, SIGSTOP);
  const Instant stopped = now();
  send_text(path, "anybody?");
  const Piece piece{a.memory.data(), 0, 8};
  const Chunk chunk = chunk_of(Operation::kWrite, piece, bind(path, a));
  ASSERT_EQ(path->submit({&chunk, 1}, now()).taken, 1u);
  ASSERT_TRUE(run({&a}, [&] { return a.silent == 1; }));
  EXPECT_LT(now() - stopped, milliseconds(800));  // Three of 100 ms, and a loaded machine.
  EXPECT_TRUE(a.down.empty());
  EXPECT_TRUE(a.done.empty());
  ASSERT_TRUE(run({&a}, [&] { return a.down.size() == 1; }));
  EXPECT_GE(now() - stopped, a.context->peer_timeout - milliseconds(100));
  EXPECT_NE(a.down[0].message().find("silent"), std::string_view::npos);
  ASSERT_EQ(a.done.size(), 1u);
  EXPECT_EQ(a.done[0].code(), Code::kDisconnected);
}

TEST(Tcp, AForkedChildLeavesTheParentAlone) {
  End a("a", {}), b("b", {});
  ASSERT_NE(a.open("b", b.backend->address()), nullptr);
  ASSERT_TRUE(run({&a, &b}, [&] { return a.up.size() == 1 && b.up.size() == 1; }));
  const pid_t pid = ::fork();
  if (pid == 0) {
    a.backend->disown_after_fork();
    b.backend->disown_after_fork();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  send_text(a.up[0], "unharmed");
  ASSERT_TRUE(run({&a, &b}, [&] { return b.messages.size() == 1; }));
  EXPECT_TRUE(a.down.empty());
}

TEST(Tcp, ADoorKnowsAddressesOfItsHost) {
  const End end("a", {});
  const auto one = open_tcp_door({}, *end.context), other = open_tcp_door({}, *end.context);
  ASSERT_TRUE(one.has_value() && other.has_value());
  EXPECT_TRUE(one->is_same_host(other->address));
  EXPECT_FALSE(one->is_same_host("0123456789abcdef@10.0.0.1:5000"));
  EXPECT_FALSE(one->is_same_host("10.0.0.1:5000")) << "what a user typed tells no host";
  EXPECT_FALSE(one->is_same_host("nonsense"));
}

TEST(Tcp, NamesAreResolvedWithinADeadline) {
#ifdef HAWSER_SANITIZE_THREAD
  GTEST_SKIP() << "getaddrinfo_a runs in a thread that ThreadSanitizer does not see being made, and crashes there";
#endif
  EXPECT_EQ(resolve_tcp_address("10.0.0.1:5", seconds(1)).value(), "10.0.0.1:5");
  EXPECT_EQ(resolve_tcp_address("[::1]:5", seconds(1)).value(), "[::1]:5");
  const auto local = resolve_tcp_address("localhost:5", seconds(5));
  ASSERT_TRUE(local.has_value()) << local.error().to_string();
  EXPECT_NE(local->find(":5"), std::string::npos);
  EXPECT_EQ(resolve_tcp_address("localhost", seconds(1)).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hawser::backend
