// TLS over tcp, on real sockets: who is let in, who is believed, and what a stranger comes to.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "backend/places/locator.h"
#include "base/address.h"
#include "base/fd.h"
#include "base/format.h"
#include "tcp_end.h"
#include "tls/preface.h"
#include "tls/session.h"

namespace hawser::backend {
namespace {

constexpr Security kAll[] = {Security::kDefault, Security::kNone, Security::kAuthenticate, Security::kEncrypt};

/// The first connection of a path, for people.
bool is_tls(Path* path) { return path->describe().find("TLS1.3") != std::string::npos; }

/// Writes `size` bytes from `a` to `b` and reads them back elsewhere.
void move_bytes(End& a, End& b, Path* path, std::size_t size) {
  SCOPED_TRACE(size);
  a.done.clear();
  for (std::size_t i = 0; i < size; ++i) a.memory[i] = static_cast<std::byte>(i * 31 + i / 251);
  std::fill(a.memory.begin() + (2 << 20), a.memory.end(), std::byte{0});
  Binding* const target = bind(path, b);
  const Piece there{a.memory.data(), 0, size};
  const Chunk write = chunk_of(Operation::kWrite, there, target);
  ASSERT_EQ(path->submit({&write, 1}, now()).taken, 1u);
  ASSERT_TRUE(run({&a, &b}, [&] { return a.done.size() == 1; }));
  EXPECT_TRUE(std::equal(a.memory.begin(), a.memory.begin() + static_cast<std::ptrdiff_t>(size), b.memory.begin()));
  const Piece back{a.memory.data() + (2 << 20), 0, size};
  const Chunk read = chunk_of(Operation::kRead, back, target);
  ASSERT_EQ(path->submit({&read, 1}, now()).taken, 1u);
  ASSERT_TRUE(run({&a, &b}, [&] { return a.done.size() == 2; }));
  EXPECT_TRUE(
      std::equal(b.memory.begin(), b.memory.begin() + static_cast<std::ptrdiff_t>(size), a.memory.begin() + (2 << 20)));
  for (const Status& status : a.done) EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST(Tls, BytesMoveBothWays) {
  End a("a", {}, Security::kEncrypt), b("b", {}, Security::kEncrypt);
  ASSERT_TRUE(a.status.ok() && b.status.ok()) << a.status.to_string();
  Path* const path = a.open(b);
  ASSERT_TRUE(run({&a, &b}, [&] { return a.up.size() == 1 && b.up.size() == 1; }));
  EXPECT_TRUE(is_tls(path)) << path->describe();
  for (const std::size_t size : {1, 8, 4096, 16 << 10, (16 << 10) + 1, 1 << 20, 2 << 20}) move_bytes(a, b, path, size);
  send_text(path, "words");
  ASSERT_TRUE(run({&a, &b}, [&] { return b.messages.size() == 1; }));
}

TEST(Tls, TheStricterLevelCounts) {
  for (const Security ours : kAll) {
    for (const Security theirs : kAll) {
      SCOPED_TRACE(base::format("{} to {}", static_cast<int>(ours), static_cast<int>(theirs)));
      End a("a", {}, ours), b("b", {}, theirs);
      Path* const path = a.open(b);
      ASSERT_TRUE(run({&a, &b}, [&] { return !a.up.empty() || !a.down.empty(); }));
      ASSERT_TRUE(a.down.empty()) << a.down[0].to_string();
      EXPECT_EQ(is_tls(path), ours == Security::kEncrypt || theirs == Security::kEncrypt) << path->describe();
    }
  }
}

TEST(Tls, WhoeverHasAnotherKeyThanTheCardTellsHearsNoWord) {
  End a("a", {}, Security::kEncrypt), b("b", {}, Security::kEncrypt), mallory("b", {}, Security::kNone);
  const std::string address = mallory.backend->address();
  mallory.identity.incarnation = b.identity.incarnation;
  ASSERT_TRUE(a.port->open_path(b.target(address), now()));
  ASSERT_TRUE(run({&a, &mallory}, [&] { return !a.down.empty(); }));
  EXPECT_NE(a.down[0].to_string().find("key"), std::string::npos) << a.down[0].to_string();
  EXPECT_TRUE(mallory.up.empty());
}

TEST(Tls, WithoutTheSecretNobodyComesIn) {
  End a("a", {}, Security::kEncrypt), b("b", {}, Security::kEncrypt);
  const std::string address = b.backend->address();
  PathTarget target = b.target(address);
  target.admission = base::random_id128();
  ASSERT_TRUE(a.port->open_path(target, now()));
  ASSERT_TRUE(run({&a, &b}, [&] { return !a.down.empty(); }));
  EXPECT_TRUE(b.up.empty());
}

TEST(Tls, AHelloInClearIsRefusedByWhoTakesTlsOnly) {
  End a("a", {}), b("b", {}, Security::kEncrypt);
  std::string address = b.backend->address();
  ASSERT_TRUE(address.starts_with("tls+"));
  address.erase(0, 4);  // As somebody types it.
  ASSERT_NE(a.open("b", address), nullptr);
  ASSERT_TRUE(run({&a, &b}, [&] { return !a.down.empty(); }));
  EXPECT_EQ(a.down[0].code(), Code::kDenied) << a.down[0].to_string();
  EXPECT_NE(a.down[0].to_string().find("TLS"), std::string::npos) << a.down[0].to_string();
  EXPECT_TRUE(b.up.empty());
  const AdmissionCounters told = b.port->admissions().value();
  EXPECT_EQ(told.let_in, 0u);
  ASSERT_EQ(told.by_code.size(), 1u);
  EXPECT_EQ(told.by_code[0], std::pair(std::string("denied"), std::uint64_t{1}));
}

TEST(Tls, TheSameUserOfThisHostNeedsNoCardForIt) {
  End a("a", {}, Security::kEncrypt), b("b", {}, Security::kEncrypt);
  Path* const path = a.open("b", b.backend->address());
  ASSERT_NE(path, nullptr);
  ASSERT_TRUE(run({&a, &b}, [&] { return !a.up.empty() || !a.down.empty(); }));
  ASSERT_TRUE(a.down.empty()) << a.down[0].to_string();
  EXPECT_TRUE(is_tls(path));
  EXPECT_EQ(b.port->admissions()->let_in, 1u);
  EXPECT_EQ(b.port->admissions()->turned_away, 0u);
}

base::Fd connect_to(const End& end) {
  const base::SocketAddress place = parse_locator(end.backend->address()).value().places[0];
  base::Fd fd(::socket(place.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  base::SocketAddress address = place;
  EXPECT_EQ(::connect(fd.get(), address.get(), address.size), 0);
  return fd;
}

/// What is not TLS, though its first byte says so, and what stops in the middle.
TEST(Tls, GarbageEndsOnlyItself) {
  End a("a", {}, Security::kEncrypt), b("b", {}, Security::kEncrypt);
  std::vector<base::Fd> strangers;
  for (const std::string& said : {std::string("\x16"), std::string("\x16\x03\x01\xff\xff"), std::string(9000, '\x16'),
                                  std::string("\x16\x03\x01\x00\x05hello", 10)}) {
    strangers.push_back(connect_to(b));
    ASSERT_EQ(::send(strangers.back().get(), said.data(), said.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(said.size()));
  }
  Path* const path = a.open(b);
  ASSERT_TRUE(run({&a, &b}, [&] { return a.up.size() == 1 && b.up.size() == 1; }));
  move_bytes(a, b, path, 100'000);
  // Those that are still waited for are given up after a while.
  ASSERT_TRUE(run({&a, &b}, [&] {
    return std::ranges::all_of(strangers, [](const base::Fd& fd) {
      pollfd end = {.fd = fd.get(), .events = POLLRDHUP, .revents = 0};
      return ::poll(&end, 1, 0) == 1 && (end.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
    });
  }));
}

TEST(Tls, AConnectionThatIsCutEndsThePathAndNoOther) {
  End a("a", {}, Security::kEncrypt), b("b", {}, Security::kEncrypt), c("c", {}, Security::kEncrypt);
  ASSERT_NE(a.open(b), nullptr);
  Path* const other = a.open(c);
  ASSERT_TRUE(run({&a, &b, &c}, [&] { return a.up.size() == 2; }));
  b.port.reset();
  b.backend.reset();
  ASSERT_TRUE(run({&a, &c}, [&] { return a.down.size() == 1; }));
  EXPECT_EQ(a.down[0].code(), Code::kDisconnected) << a.down[0].to_string();
  move_bytes(a, c, other, 5'000);
}

TEST(Tls, AGoodbyeArrivesBeforeTheEnd) {
  End a("a", {}, Security::kEncrypt), b("b", {}, Security::kEncrypt);
  ASSERT_NE(a.open(b), nullptr);
  ASSERT_TRUE(run({&a, &b}, [&] { return a.up.size() == 1 && b.up.size() == 1; }));
  a.port->begin_close(now());
  ASSERT_TRUE(run({&a, &b}, [&] { return !b.down.empty() && a.port->idle(); }));
  EXPECT_NE(b.down[0].to_string().find("goodbye"), std::string::npos) << b.down[0].to_string();
}

/// The first words of a TLS connection, as an honest opener says them.
std::string client_hello() {
  const auto credentials = tls::Credentials::make(tls::KeyPair::make()).value();
  const auto session = tls::Session::open(credentials, tls::End::kOpener).value();
  EXPECT_TRUE(session->handshake().ok());
  const std::span<const std::byte> bytes = session->to_send();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// docs/threat-model.md has the bound.
TEST(Tls, ConnectionsThatProveNothingTakeABoundedAmountOfMemory) {
#if defined(HAWSER_SANITIZE_THREAD) || defined(HAWSER_SANITIZE_ADDRESS_UNDEFINED)
  GTEST_SKIP() << "a sanitizer's heap has other sizes";
#endif
  constexpr std::size_t kConnections = 16;  // Of one source.
  constexpr std::size_t kBoundEach = 64 << 10;
  End b("b", {}, Security::kEncrypt);
  const std::string hello = client_hello();
  const auto knock = [&](std::vector<base::Fd>& into) {
    into.push_back(connect_to(b));
    EXPECT_EQ(::send(into.back().get(), hello.data(), hello.size(), MSG_NOSIGNAL), static_cast<ssize_t>(hello.size()));
    EXPECT_TRUE(run({&b}, [&] {
      pollfd answered = {.fd = into.back().get(), .events = POLLIN, .revents = 0};
      return ::poll(&answered, 1, 0) == 1;
    }));
  };
  std::vector<base::Fd> first, rest;
  knock(first);  // What is made once for all.
  const std::size_t before = ::mallinfo2().uordblks;
  for (std::size_t i = 1; i < kConnections; ++i) knock(rest);
  const std::size_t each = (::mallinfo2().uordblks - before) / (kConnections - 1);
  std::printf("a connection in the middle of its handshake takes %zu bytes\n", each);
  EXPECT_LT(each, kBoundEach);
}

/// Round trips of `count` messages between two agents, in microseconds, sorted; `beside` runs once for each.
std::vector<double> round_trips(End& a, End& b, Path* there, Path* back, int count,
                                const std::function<void()>& beside) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    beside();
    const Instant began = now();
    a.messages.clear(), b.messages.clear();
    send_text(there, "ping");
    EXPECT_TRUE(run({&a, &b}, [&] { return !b.messages.empty(); }));
    send_text(back, "pong");
    EXPECT_TRUE(run({&a, &b}, [&] { return !a.messages.empty(); }));
    times.push_back(std::chrono::duration<double, std::micro>(now() - began).count());
  }
  std::ranges::sort(times);
  return times;
}

/// Round trips between `a` and `b`, alone and beside strangers who begin TLS with `b`. Returns how many did.
std::size_t flood(End& a, End& b) {
  constexpr int kCount = 2000;
  Path* const there = a.open(b);
  EXPECT_TRUE(run({&a, &b}, [&] { return a.up.size() == 1 && b.up.size() == 1; }));
  const std::vector<double> idle = round_trips(a, b, there, b.up[0], kCount, [] {});
  const std::string hello = client_hello();
  base::SocketAddress place = parse_locator(b.backend->address()).value().places[0];
  std::vector<base::Fd> strangers(32);
  std::size_t opened = 0;
  const std::vector<double> flooded = round_trips(a, b, there, b.up[0], kCount, [&] {
    base::Fd& next = strangers[opened % strangers.size()];
    next.reset(::socket(place.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    static_cast<void>(::connect(next.get(), place.get(), place.size));  // Nobody answers once the queue is full.
    if (::send(next.get(), hello.data(), hello.size(), MSG_NOSIGNAL) > 0) ++opened;
  });
  std::printf("round trip idle p50 %.0f us p99 %.0f, beside %zu strangers p50 %.0f us p99 %.0f\n", idle[kCount / 2],
              idle[kCount * 99 / 100], opened, flooded[kCount / 2], flooded[kCount * 99 / 100]);
  std::fflush(stdout);  // It may be a child that does not end as programs do.
  EXPECT_TRUE(a.down.empty() && b.down.empty());
  move_bytes(a, b, there, 100'000);
  return opened;
}

// Each connection of the same user costs the owner a signature and a key exchange.
TEST(Tls, AFloodOfHandshakesDoesNotStopTheService) {
  End a("a", {}, Security::kEncrypt), b("b", {}, Security::kEncrypt);
  EXPECT_GT(flood(a, b), 0u);
}

// ---- Beyond the host: an address of this namespace that is not loopback counts as such.

/// False: no namespaces here.
bool enter_network() {
  if (::unshare(CLONE_NEWNET) != 0) return false;
  const base::Fd any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::snprintf(request.ifr_name, sizeof(request.ifr_name), "lo");
  request.ifr_flags = IFF_UP;
  if (::ioctl(any.get(), SIOCSIFFLAGS, &request) != 0) return false;
  std::snprintf(request.ifr_name, sizeof(request.ifr_name), "lo:1");
  const sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = 0, .sin_addr = {.s_addr = htonl(0x0a630001)}, .sin_zero = {}};
  std::memcpy(&request.ifr_addr, &address, sizeof(address));
  return ::ioctl(any.get(), SIOCSIFADDR, &request) == 0;
}

constexpr int kSkipped = 77;

/// Runs `body` in a process with a network of its own, and 10.99.0.1 in it; its failures are told there.
template <typename Body>
void in_own_network(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!enter_network()) ::_exit(kSkipped);
    body();
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == kSkipped) GTEST_SKIP() << "no network namespaces here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

const Params kBeyond = {{"listen", "10.99.0.1"}};

TEST(TlsBeyondTheHost, IsTlsUnlessNeitherWantsIt) {
  in_own_network([] {
    for (const Security ours : kAll) {
      for (const Security theirs : kAll) {
        SCOPED_TRACE(base::format("{} to {}", static_cast<int>(ours), static_cast<int>(theirs)));
        End a("a", kBeyond, ours), b("b", kBeyond, theirs);
        ASSERT_TRUE(a.status.ok() && b.status.ok()) << a.status.to_string() << b.status.to_string();
        Path* const path = a.open(b);
        ASSERT_TRUE(run({&a, &b}, [&] { return !a.up.empty() || !a.down.empty(); }));
        ASSERT_TRUE(a.down.empty()) << a.down[0].to_string();
        EXPECT_EQ(is_tls(path), ours != Security::kNone || theirs != Security::kNone) << path->describe();
        move_bytes(a, b, path, 50'000);
      }
    }
  });
}

TEST(TlsBeyondTheHost, WithoutCardOrTicketNobodyIsFound) {
  in_own_network([] {
    for (const Security ours : kAll) {
      for (const Security theirs : kAll) {
        SCOPED_TRACE(base::format("{} to {}", static_cast<int>(ours), static_cast<int>(theirs)));
        End a("a", kBeyond, ours), b("b", kBeyond, theirs);
        ASSERT_NE(a.open("b", b.backend->address()), nullptr);
        ASSERT_TRUE(run({&a, &b}, [&] { return !a.up.empty() || !a.down.empty(); }));
        const bool is_free = ours == Security::kNone && theirs == Security::kNone;
        ASSERT_EQ(a.up.size(), is_free ? 1u : 0u);
        if (is_free) {
          EXPECT_TRUE(run({&a, &b}, [&] { return b.up.size() == 1; }));
          continue;
        }
        EXPECT_TRUE(b.up.empty());
        EXPECT_EQ(a.down[0].code(), Code::kDenied) << a.down[0].to_string();
        EXPECT_NE(a.down[0].to_string().find("ticket"), std::string::npos) << a.down[0].to_string();
      }
    }
  });
}

// Others have to show that they have the card before anything is computed for them.
TEST(TlsBeyondTheHost, AFloodOfStrangersDoesNotStopTheService) {
  in_own_network([] {
    End a("a", kBeyond), b("b", kBeyond);
    EXPECT_GT(flood(a, b), 0u);
  });
}

TEST(TlsBeyondTheHost, ATlsHelloWithoutAGoodPrefaceIsAnsweredByNothing) {
  in_own_network([] {
    End b("b", kBeyond);
    const tls::Preface wrong = tls::make_preface(base::random_id128(), b.keys.public_key());
    const tls::Preface other = tls::make_preface(b.identity.admission, tls::KeyPair::make().public_key());
    for (const tls::Preface* preface : {static_cast<const tls::Preface*>(nullptr), &wrong, &other}) {
      const std::string said =
          preface == nullptr
              ? client_hello()
              : std::string(reinterpret_cast<const char*>(preface->data()), preface->size()) + client_hello();
      const base::Fd fd = connect_to(b);
      ASSERT_EQ(::send(fd.get(), said.data(), said.size(), MSG_NOSIGNAL), static_cast<ssize_t>(said.size()));
      ssize_t got = -1;
      ASSERT_TRUE(run({&b}, [&] {
        std::array<char, 64> some;
        got = ::recv(fd.get(), some.data(), some.size(), MSG_DONTWAIT);
        return got >= 0 || errno != EAGAIN;
      }));
      EXPECT_LE(got, 0) << "it was answered";
    }
    EXPECT_EQ(b.port->admissions()->turned_away, 3u) << "though the log has one line for all";
  });
}

/// A hello by hand, in clear: the refusal does not tell who refuses.
TEST(TlsBeyondTheHost, WhatIsSaidInClearTellsNothing) {
  in_own_network([] {
    End b("the secret name", kBeyond);
    wire::Hello hello;
    hello.name = "stranger";
    hello.incarnation = {8, 8};
    hello.session = {7, 7};
    hello.token = {6, 6};
    hello.admission = wire::Admission::kNone;
    const std::string bytes = wire::encode(hello);
    const base::Fd fd = connect_to(b);
    ASSERT_EQ(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    std::string heard;
    ASSERT_TRUE(run({&b}, [&] {
      std::array<char, 2048> some;
      const ssize_t got = ::recv(fd.get(), some.data(), some.size(), MSG_DONTWAIT);
      if (got > 0) heard.append(some.data(), static_cast<std::size_t>(got));
      return got == 0 || (got < 0 && errno != EAGAIN);
    }));
    const auto answer = wire::decode_hello(std::as_bytes(std::span(heard)));
    ASSERT_TRUE(answer) << answer.error().to_string();
    EXPECT_EQ(answer->status, Code::kDenied);
    EXPECT_NE(answer->reason.find("TLS"), std::string::npos) << answer->reason;
    EXPECT_EQ(answer->name, "-");
    EXPECT_TRUE(answer->listen.empty());
    EXPECT_TRUE(answer->incarnation.is_zero());
    EXPECT_EQ(answer->public_key, (std::array<std::byte, 32>{}));
    EXPECT_EQ(heard.find("secret"), std::string::npos);
  });
}

}  // namespace
}  // namespace hawser::backend
