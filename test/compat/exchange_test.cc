// Metadata that travels by itself: by address between two agents, and through a real etcd, between two processes too.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <hawser/compat/agent.h>
#include <hawser/directory.h>

#include "base/fd.h"
#include "base/inside.h"
#include "compat/core.h"
#include "etcd_server.h"
#include "identity/revocation_key.h"
#include "identity/test_authority.h"
#include "identity/whole_file.h"
#include "log.h"

namespace hawser::compat {
namespace {

using etcd_test::EtcdServer;
using etcd_test::eventually;
using namespace std::chrono_literals;

/// An agent with a backend and memory.
class Side {
 public:
  explicit Side(const std::string& name, AgentConfig config = {}) : memory_(4096) {
    if (!config.environment) config.environment.emplace();
    agent_ = Agent::open(name, config).value();
    (void)agent_.create_backend("UCX").value();
    RegDescList list(MemType::kDram);
    list.add(reinterpret_cast<std::uintptr_t>(memory_.data()), memory_.size());
    registered_ = agent_.register_memory(list).value();
  }
  Agent& agent() { return agent_; }
  std::uint16_t port() { return core_of(agent_)->exchange("port").value()->port(); }
  bool knows(const std::string& name, bool wanted = true) {
    return eventually([&] { return agent_.check_remote_metadata(name) == wanted; });
  }
  const RegDescList& list() const { return registered_.list(); }

 private:
  std::vector<char> memory_;
  Agent agent_;
  RegistrationHandle registered_;
};

AgentConfig listening() { return {.listen_thread = true, .listen_port = 0}; }
OptArgs at(std::uint16_t port) {
  OptArgs opt;
  opt.ip_address = "127.0.0.1";
  opt.port = port;
  return opt;
}

TEST(ExchangeByAddress, SentFetchedAndInvalidated) {
  Side a("a", listening()), b("b");
  const OptArgs to_a = at(a.port());
  ASSERT_TRUE(b.agent().send_local_md(&to_a).ok());
  EXPECT_TRUE(a.knows("b"));
  ASSERT_TRUE(b.agent().fetch_remote_md("a", &to_a).ok());
  EXPECT_TRUE(b.knows("a"));
  ASSERT_TRUE(b.agent().invalidate_local_md(&to_a).ok());
  EXPECT_TRUE(a.knows("b", false));
  ASSERT_TRUE(b.agent().send_local_partial_md(b.list(), &to_a).ok());
  // Nobody of that name, and nobody at all: said in the log, as NIXL does.
  ASSERT_TRUE(b.agent().fetch_remote_md("stranger", &to_a).ok());
  const OptArgs nowhere = at(1);
  ASSERT_TRUE(b.agent().send_local_md(&nowhere).ok());
}

TEST(ExchangeByAddress, WhatMayNotBeIsRefusedAtOnce) {
  Side a("a");
  const auto code = [&](const OptArgs* opt) { return code_of(a.agent().send_local_md(opt)); };
  EXPECT_EQ(code(nullptr), NixlCode::kInvalidParam);
  OptArgs opt = at(1);
  opt.ip_address = "198.51.100.7";
  const Status beyond = a.agent().send_local_md(&opt);
  EXPECT_EQ(code_of(beyond), NixlCode::kNotAllowed);
  EXPECT_NE(beyond.to_string().find("HAWSER_SECURITY"), std::string::npos);
  opt.ip_address = "no address";
  EXPECT_EQ(code(&opt), NixlCode::kInvalidParam);
}

/// An address of this host that is not loopback: metadata goes there as to another host. Empty: it has none.
std::string outer_address() {
  std::string found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  for (const ifaddrs* one = all; one != nullptr && found.empty(); one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* const address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    const bool is_outer = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (is_outer && ::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size()) != nullptr) found = text.data();
  }
  ::freeifaddrs(all);
  return found;
}

/// Agents with identities by one authority, whose directory is of this test alone. Nobody runs them.
class ExchangeRevoked : public testing::Test {
 protected:
  void SetUp() override {
    if (outer_.empty()) GTEST_SKIP() << "this host has loopback only, and metadata goes in clear there";
  }
  AgentConfig config(const std::string& name, const std::string& folder, Log& log) {
    AgentConfig config = listening();
    config.progress_thread = false;
    config.environment = {
        {"HAWSER_IDENTITY", folder}, {"HAWSER_IDENTITY_LOOK", "50ms"}, {"HAWSER_DIRECTORY", "inproc:revoked-" + name}};
    config.log = log.sink();
    return config;
  }
  OptArgs to(Side& side) const {
    OptArgs opt = at(side.port());
    opt.ip_address = outer_;
    return opt;
  }
  /// As `hawser ca revoke NAME --directory` does it, where `agent` looks.
  void revoke(const std::string& name, const std::string& agent) {
    ASSERT_TRUE(authority_.get().revoke(name, identity::unix_seconds()).has_value());
    const auto directory = inproc_directory("revoked-" + agent);
    const Ticket put =
        directory->put(identity::revocation_key("example.org"), *authority_.get().revoked(), PutOptions{});
    ASSERT_TRUE(eventually([&] {
      const Instant now = Clock::steady().now();
      (void)directory->run_job(now, now + 50ms);
      return directory->poll(put).has_value();
    }));
  }
  /// Asks until it is refused with these words.
  static bool is_refused(Side& asker, const std::string& name, const OptArgs& opt, const Log& log,
                         std::string_view words) {
    return eventually([&] {
      if (asker.agent().check_remote_metadata(name)) (void)asker.agent().invalidate_remote_md(name);
      (void)asker.agent().fetch_remote_md(name, &opt);
      return log.has(words);
    });
  }

  const std::string outer_ = outer_address();
  identity::TestAuthority authority_;
  Log log_a_, log_b_;
};

TEST_F(ExchangeRevoked, AListenerRefusesWhoWasRevokedInItsDirectory) {
  Side a("a", config("a", authority_.issue_to("a"), log_a_)), b("b", config("b", authority_.issue_to("b"), log_b_));
  const OptArgs to_a = to(a);
  ASSERT_TRUE(b.agent().fetch_remote_md("a", &to_a).ok());
  ASSERT_TRUE(b.knows("a")) << log_b_.text();
  revoke("b", "a");
  EXPECT_TRUE(is_refused(b, "a", to_a, log_b_, "it refuses: denied")) << log_a_.text() << log_b_.text();
  // It answers first, and then says why.
  EXPECT_TRUE(eventually([&] { return log_a_.has("its authority has revoked it"); })) << log_a_.text();
}

TEST_F(ExchangeRevoked, AnAskerRefusesWhoWasRevokedInItsDirectory) {
  Side a("a", config("a", authority_.issue_to("a"), log_a_)), b("b", config("b", authority_.issue_to("b"), log_b_));
  const OptArgs to_b = to(b);
  ASSERT_TRUE(a.agent().fetch_remote_md("b", &to_b).ok());
  ASSERT_TRUE(a.knows("b")) << log_a_.text();
  revoke("b", "a");
  EXPECT_TRUE(is_refused(a, "b", to_b, log_a_, "its authority has revoked it")) << log_a_.text() << log_b_.text();
  EXPECT_FALSE(log_a_.has("it refuses")) << "b knows nothing of it";
}

// The agent and the exchange share what they know of the files, and so the log says it once.
TEST_F(ExchangeRevoked, WhatIsWrongWithTheFilesIsSaidOnce) {
  const std::string folder = authority_.issue_to("a");
  AgentConfig known = config("a", folder, log_a_), asker = config("b", authority_.issue_to("b"), log_b_);
  for (AgentConfig* one : {&known, &asker}) (*one->environment)["HAWSER_BACKENDS"] = "tcp";
  Side a("a", known), b("b", asker);
  ASSERT_TRUE(identity::write_whole_file(folder + "/tls.crt", "nonsense", 0644).ok());
  const OptArgs to_a = to(a);
  ASSERT_TRUE(b.agent().fetch_remote_md("a", &to_a).ok());  // Here the exchange looks at the files,
  ASSERT_TRUE(b.knows("a")) << log_b_.text();
  ASSERT_TRUE(eventually([&] { return log_a_.has("what is new in"); })) << log_a_.text();
  ASSERT_TRUE(b.agent().send_notification("a", "word").ok());
  NotificationMap got;
  ASSERT_TRUE(eventually([&] {  // and here the agent, which is greeted.
    NotificationMap none;
    (void)b.agent().get_notifications(none);
    (void)a.agent().get_notifications(got);
    return !got.empty();
  })) << log_a_.text();
  EXPECT_EQ(log_a_.count("what is new in"), 1u) << log_a_.text();
}

/// A connection to a listener, by hand.
base::Fd connect_to(std::uint16_t port) {
  base::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

/// Runs `act` in a process of another user; its exit code is 0 when `act` says that all was as it should be.
pid_t as_another_user(const std::function<bool()>& act) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::setresuid(1234, 1234, 1234) == 0 && act() ? 0 : 1);
  return child;
}

int ended(pid_t child) {
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

// Metadata holds keys: another user's process gets none, and neither plants nor invalidates any.
TEST(ExchangeByAddress, AnotherUserGetsAndChangesNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can run a process of another user";
  Side a("a", listening()), b("b", listening());
  const OptArgs to_a = at(a.port());
  ASSERT_TRUE(b.agent().send_local_md(&to_a).ok());
  ASSERT_TRUE(a.knows("b"));
  const std::uint16_t port = a.port();
  for (const Frame::Kind kind : {Frame::Kind::kAsk, Frame::Kind::kInvalidate, Frame::Kind::kLoad}) {
    const std::string asked = encode_frame({.kind = kind, .name = kind == Frame::Kind::kAsk ? "a" : "b", .body = {}});
    const pid_t child = as_another_user([&] {
      const base::Fd fd = connect_to(port);
      (void)::send(fd.get(), asked.data(), asked.size(), MSG_NOSIGNAL);
      std::string got(1 << 16, 0);
      ssize_t size = ::recv(fd.get(), got.data(), got.size(), MSG_WAITALL);
      if (size < 0) size = 0;  // Reset behind the refusal.
      got.resize(static_cast<std::size_t>(size));
      return got.find("HWCD") == std::string::npos &&
             (got.empty() || got.find("another user") != std::string::npos || got.find("runs as") != std::string::npos);
    });
    EXPECT_EQ(ended(child), 0) << static_cast<int>(kind);
  }
  EXPECT_TRUE(a.agent().check_remote_metadata("b")) << "a stranger invalidated it";
}

// Nor does a listener of another user get what is sent to where a peer should listen.
TEST(ExchangeByAddress, AListenerOfAnotherUserIsSentNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can run a process of another user";
  const base::Fd listener(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const pid_t child = as_another_user([&] {
    const base::Fd taken(::accept(listener.get(), nullptr, nullptr));
    char byte = 0;
    return ::recv(taken.get(), &byte, 1, 0) <= 0;  // It is closed without a byte.
  });
  Side b("b");
  const OptArgs there = at(ntohs(address.sin_port));
  ASSERT_TRUE(b.agent().send_local_md(&there).ok());
  EXPECT_EQ(ended(child), 0);
}

TEST(ExchangeByAddress, LinksThatMisbehaveEndAndOthersGoOn) {
  Side a("a", listening()), b("b");
  const std::uint16_t port = a.port();
  // No frame at all: refused at its first bytes.
  const base::Fd stranger = connect_to(port);
  ASSERT_EQ(::send(stranger.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
  std::string answer(4096, '\0');
  const ssize_t size = ::recv(stranger.get(), answer.data(), answer.size(), MSG_WAITALL);
  ASSERT_GT(size, 0);
  EXPECT_NE(answer.find("no frame"), std::string::npos);
  // Places taken by those who say nothing, one that drips, one that never stops: all end by themselves.
  std::vector<base::Fd> silent;
  for (std::size_t i = 0; i < kLinksMax - 4; ++i) silent.push_back(connect_to(port));
  const base::Fd dripping = connect_to(port), flooding = connect_to(port);
  const std::string head = encode_frame({.kind = Frame::Kind::kLoad, .name = "x", .body = std::string(1 << 20, 'x')});
  ASSERT_GT(::send(flooding.get(), head.data(), head.size() / 2, MSG_NOSIGNAL), 0);
  const OptArgs to_a = at(port);
  ASSERT_TRUE(b.agent().send_local_md(&to_a).ok());
  EXPECT_TRUE(a.knows("b"));
  const auto is_closed = [](const base::Fd& fd) {
    char byte = 0;
    const ssize_t got = ::recv(fd.get(), &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
  };
  std::size_t dripped = 0;  // A good frame, byte by byte: it would take hours.
  EXPECT_TRUE(eventually([&] {
    dripped += ::send(dripping.get(), &head[dripped], 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 1 : 0;
    return is_closed(dripping);
  }));
  EXPECT_TRUE(eventually([&] { return is_closed(flooding); }));
  EXPECT_TRUE(eventually([&] { return is_closed(silent.back()); }));
}

/// A listener by hand: what is asked there is answered by the test, or never.
class RawListener {
 public:
  RawListener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;  // Somebody else listens there next.
    EXPECT_EQ(::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd_.get(), 64), 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  std::uint16_t port() const { return port_; }
  /// The question of the next connection.
  Frame next(base::Fd* connection) {
    connection->reset(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    welcome(*connection);
    std::string got;
    for (char byte = 0; ::recv(connection->get(), &byte, 1, 0) == 1;) {
      got.push_back(byte);
      const Result<std::optional<Frame>> frame = decode_frame(got);
      if (!frame || *frame) return frame ? **frame : Frame{};
    }
    return {};
  }
  static void welcome(const base::Fd& connection) {
    answer(connection, {.kind = Frame::Kind::kWelcome, .body = std::string(1 + kNonceBytes, '\0')});
  }
  static void answer(const base::Fd& connection, const Frame& frame) {
    const std::string bytes = encode_frame(frame);
    EXPECT_EQ(::send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  void close() { fd_.reset(); }

 private:
  base::Fd fd_;
  std::uint16_t port_ = 0;
};

// Before, each of them delayed what followed by five seconds.
TEST(TrialsExchange, SilentPeersDelayNobodyElse) {
  Side a("a", listening()), b("b");
  std::vector<RawListener> silent(4);
  const Instant begin = Clock::steady().now();
  for (const RawListener& one : silent) {
    const OptArgs to = at(one.port());
    ASSERT_TRUE(b.agent().send_local_md(&to).ok());
    ASSERT_TRUE(b.agent().fetch_remote_md("x", &to).ok());
  }
  const OptArgs to_a = at(a.port());
  ASSERT_TRUE(b.agent().send_local_md(&to_a).ok());
  ASSERT_TRUE(b.agent().fetch_remote_md("a", &to_a).ok());
  EXPECT_TRUE(a.knows("b"));
  EXPECT_TRUE(b.knows("a"));
  EXPECT_LT(Clock::steady().now() - begin, kAskTime) << "it waited for one of the silent ones";
}

// Before, it was tried once.
TEST(TrialsExchange, AFetchBeforeThePeerListensIsServedOnceItDoes) {
  Side b("b");
  RawListener before;
  const OptArgs to = at(before.port());
  ASSERT_TRUE(b.agent().fetch_remote_md("a", &to).ok());
  base::Fd connection;
  EXPECT_EQ(before.next(&connection).name, "a");  // It was tried,
  before.close();
  connection.reset();  // was turned away, and finds nobody for a while.
  AgentConfig late = listening();
  late.listen_port = before.port();
  Side a("a", late);
  EXPECT_TRUE(b.knows("a"));
}

// A rolling restart: the process that ends takes back its own metadata, not that of its successor.
TEST(TrialsExchange, WhatAnEndingProcessTakesBackIsItsOwn) {
  Side a("a", listening()), ending("b"), successor("b");
  const OptArgs to_a = at(a.port());
  ASSERT_TRUE(ending.agent().send_local_md(&to_a).ok());
  ASSERT_TRUE(a.knows("b"));
  const std::string blob = successor.agent().get_local_md().value();
  ASSERT_TRUE(a.agent().load_remote_md(blob));
  ASSERT_TRUE(ending.agent().invalidate_local_md(&to_a).ok());
  ASSERT_TRUE(ending.agent().fetch_remote_md("a", &to_a).ok());
  ASSERT_TRUE(ending.knows("a"));  // The listener has answered what was asked before.
  EXPECT_TRUE(a.agent().check_remote_metadata("b")) << "its successor's metadata was dropped";
  ASSERT_TRUE(successor.agent().invalidate_local_md(&to_a).ok());
  EXPECT_TRUE(a.knows("b", false));
}

// Before, they kept others out for five seconds.
TEST(TrialsExchange, IdleConnectionsKeepNobodyOut) {
  Side a("a", listening()), b("b");
  std::vector<base::Fd> idle;
  for (std::size_t i = 0; i < kLinksMax + 6; ++i) idle.push_back(connect_to(a.port()));
  const Instant begin = Clock::steady().now();
  const OptArgs to_a = at(a.port());
  ASSERT_TRUE(b.agent().send_local_md(&to_a).ok());
  EXPECT_TRUE(a.knows("b"));
  EXPECT_LT(Clock::steady().now() - begin, kSilentTime) << "it waited for the time of the idle ones to be over";
}

TEST(TrialsExchange, WhatChangesMetadataGoesToOneAddressInOrder) {
  Side b("b");
  RawListener there;
  const OptArgs to = at(there.port());
  ASSERT_TRUE(b.agent().send_local_md(&to).ok());
  base::Fd first, second, third;
  ASSERT_EQ(there.next(&first).kind, Frame::Kind::kLoad);
  ASSERT_TRUE(b.agent().invalidate_local_md(&to).ok());
  ASSERT_TRUE(b.agent().fetch_remote_md("there", &to).ok());
  EXPECT_EQ(there.next(&second).kind, Frame::Kind::kAsk);  // It waits for nothing.
  RawListener::answer(first, {.kind = Frame::Kind::kDone});
  EXPECT_EQ(there.next(&third).kind, Frame::Kind::kInvalidate);
}

TEST(TrialsExchange, WhoIsForgottenWhileItIsAskedStaysForgotten) {
  Side a("a", listening()), b("b");
  RawListener there;
  const OptArgs to = at(there.port()), to_a = at(a.port());
  ASSERT_TRUE(b.agent().fetch_remote_md("a", &to).ok());
  base::Fd connection;
  ASSERT_EQ(there.next(&connection).kind, Frame::Kind::kAsk);
  (void)b.agent().invalidate_remote_md("a");
  const std::string blob = a.agent().get_local_md().value();
  RawListener::answer(connection, {.kind = Frame::Kind::kLoad, .name = "a", .body = blob});
  char byte = 0;
  EXPECT_LE(::recv(connection.get(), &byte, 1, 0), 0);  // Over and done with.
  EXPECT_FALSE(b.agent().check_remote_metadata("a"));
  ASSERT_TRUE(b.agent().fetch_remote_md("a", &to_a).ok());
  EXPECT_TRUE(b.knows("a"));
}

// Requests and prepared lists keep what is behind an agent; its port is free all the same once it is closed.
TEST(ExchangeByAddress, ACloseEndsItWhateverHandlesAreLeft) {
  Side a("a", listening()), b("b");
  const std::uint16_t port = a.port();
  const OptArgs to_a = at(port);
  XferDescList blocks(MemType::kDram);
  blocks.add(a.list().begin()->addr, a.list().begin()->len);
  const auto kept = a.agent().prepare_xfer_dlist("", blocks).value();
  ASSERT_TRUE(a.agent().close().ok());
  AgentConfig same = listening();
  same.listen_port = port;
  same.environment.emplace();
  const auto next = Agent::open("next", same);
  EXPECT_TRUE(next) << next.error().to_string();
  EXPECT_FALSE(a.agent().send_local_md(&to_a).ok()) << "it was opened again";
  EXPECT_FALSE(a.agent().fetch_remote_md("b", &to_a).ok());
  EXPECT_EQ(kept.size(), 1u);
}

/// An exchange over a directory of this process, and a book of who is known, as an agent has it.
class Forgetful : public testing::Test {
 protected:
  Forgetful() {
    Exchange::Setup setup{.name = "here", .directory = its_, .listen = {}, .log = {}};
    exchange_ = Exchange::open(std::move(setup),
                               {
                                   .load = [this](std::string_view blob, std::string_view,
                                                  const auto& is_wanted) { return load(blob, is_wanted); },
                                   .invalidate =
                                       [this](std::string_view name, const std::optional<base::Id128>&) {
                                         return invalidate(name, [] { return true; });
                                       },
                                   .drop = [this](std::string_view name, std::string_view,
                                                  const auto& is_wanted) { return invalidate(name, is_wanted); },
                                   .metadata = [] { return std::string("blob"); },
                                   .self = [] { return std::optional<Exchange::Self>(); },
                               })
                    .value();
  }
  ~Forgetful() override { gate_.set(false); }
  /// Slow while the gate is shut, which is before the book is looked at.
  Result<std::string> load(std::string_view blob, const std::function<bool()>& is_wanted) {
    ++loading_;
    gate_.wait();
    const std::lock_guard lock(mutex_);
    if (!is_wanted()) return Status(Code::kCancelled, "forgotten");
    known_.emplace(blob);
    ++loaded_;
    return std::string(blob);
  }
  /// Likewise.
  Status invalidate(std::string_view name, const std::function<bool()>& is_wanted) {
    ++invalidating_;
    gate_.wait();
    const std::lock_guard lock(mutex_);
    if (!is_wanted()) return Status(Code::kCancelled, "forgotten");
    known_.erase(std::string(name));
    return {};
  }
  /// As AgentCore::forget does it.
  void forget(const std::string& name) {
    exchange_->forget(name);
    const std::lock_guard lock(mutex_);
    known_.erase(name);
  }
  /// As the user loads metadata that came another way.
  void load_by_hand(const std::string& name) {
    const std::lock_guard lock(mutex_);
    known_.insert(name);
  }
  bool knows(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return known_.contains(name);
  }
  void publish(const std::string& name) { await(peers_->put(name + "/metadata", name, {})); }
  void take_back(const std::string& name) { await(peers_->erase(name + "/metadata")); }
  void await(Ticket ticket) {
    std::optional<DirectoryEvent> answer;
    ASSERT_TRUE(eventually([&] {
      (void)peers_->run_job(etcd_test::now(), etcd_test::now());
      return (answer = peers_->poll(ticket)).has_value();
    }));
    ASSERT_TRUE(answer->status.ok()) << answer->status.to_string();
  }

  /// This directory does nothing by itself.
  template <typename Done>
  bool soon(Done done) {
    return eventually([&] {
      (void)its_->run_job(etcd_test::now(), etcd_test::now());
      return done();
    });
  }

  struct Gate {
    void set(bool is_shut) {
      const std::lock_guard lock(mutex);
      shut = is_shut;
      changed.notify_all();
    }
    void wait() {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return !shut; });
    }
    std::mutex mutex;
    std::condition_variable changed;
    bool shut = false;
  };
  const std::string store_ = "exchange of " + std::to_string(reinterpret_cast<std::uintptr_t>(this));
  std::shared_ptr<Directory> peers_ = inproc_directory(store_), its_ = inproc_directory(store_);
  std::mutex mutex_;
  std::set<std::string> known_;
  Gate gate_;
  std::atomic<int> loading_{0}, loaded_{0}, invalidating_{0};
  std::unique_ptr<Exchange> exchange_;
};

TEST_F(Forgetful, WhoIsForgottenWhileItIsLoadedStaysForgotten) {
  publish("b");
  gate_.set(true);
  ASSERT_TRUE(exchange_->fetch("fetch_remote_md", "b", nullptr).ok());
  ASSERT_TRUE(soon([&] { return loading_ == 1; }));
  forget("b");
  gate_.set(false);
  // Whoever is fetched next is loaded after it.
  publish("c");
  ASSERT_TRUE(exchange_->fetch("fetch_remote_md", "c", nullptr).ok());
  ASSERT_TRUE(soon([&] { return knows("c"); }));
  EXPECT_FALSE(knows("b"));
  // Nor by what it publishes later, until it is fetched again.
  publish("b");
  publish("c");
  ASSERT_TRUE(soon([&] { return loaded_ >= 2; }));
  EXPECT_FALSE(knows("b"));
  ASSERT_TRUE(exchange_->fetch("fetch_remote_md", "b", nullptr).ok());
  EXPECT_TRUE(soon([&] { return knows("b"); }));
}

TEST_F(Forgetful, WhoIsForgottenWhileTooMuchWaitsStaysForgotten) {
  publish("b");
  ASSERT_TRUE(exchange_->fetch("fetch_remote_md", "b", nullptr).ok());
  ASSERT_TRUE(soon([&] { return knows("b"); }));
  publish("slow");
  gate_.set(true);
  ASSERT_TRUE(exchange_->fetch("fetch_remote_md", "slow", nullptr).ok());
  ASSERT_TRUE(soon([&] { return loading_ == 2; }));
  // The thread is busy, and nothing more can be handed in.
  std::size_t waiting = 0;
  while (exchange_->send("send_local_md", "blob", false, nullptr).ok()) ASSERT_LT(++waiting, 10'000u);
  forget("b");
  gate_.set(false);
  publish("b");
  publish("slow");
  ASSERT_TRUE(soon([&] { return loaded_ >= 3; }));
  EXPECT_FALSE(knows("b"));
}

TEST_F(Forgetful, AFetchThatWaitsIsForgottenToo) {
  publish("slow");
  gate_.set(true);
  ASSERT_TRUE(exchange_->fetch("fetch_remote_md", "slow", nullptr).ok());
  ASSERT_TRUE(soon([&] { return loading_ == 1; }));
  publish("b");
  ASSERT_TRUE(exchange_->fetch("fetch_remote_md", "b", nullptr).ok());
  forget("b");
  publish("c");
  ASSERT_TRUE(exchange_->fetch("fetch_remote_md", "c", nullptr).ok());
  gate_.set(false);
  ASSERT_TRUE(soon([&] { return knows("c"); }));
  EXPECT_TRUE(knows("slow"));
  EXPECT_FALSE(knows("b"));
}

// Keys that went away invalidate their agents one by one. Whom the user forgot meanwhile, and loaded anew by other
// means, is not hit.
TEST_F(Forgetful, WhoIsForgottenAndLoadedAnewIsNotInvalidated) {
  for (const char* name : {"b1", "b2", "b3"}) {
    publish(name);
    ASSERT_TRUE(exchange_->fetch("fetch_remote_md", name, nullptr).ok());
  }
  ASSERT_TRUE(soon([&] { return knows("b1") && knows("b2") && knows("b3"); }));
  gate_.set(true);
  for (const char* name : {"b1", "b2", "b3"}) take_back(name);
  ASSERT_TRUE(soon([&] { return invalidating_ == 1; }));
  for (const char* name : {"b1", "b2"}) {  // The one that is under way, and one that waits.
    forget(name);
    load_by_hand(name);
  }
  gate_.set(false);
  ASSERT_TRUE(soon([&] { return !knows("b3"); }));
  EXPECT_TRUE(knows("b1"));
  EXPECT_TRUE(knows("b2"));
}

// Before, who invalidated an agent just after it had taken back its metadata was told that it was unknown.
TEST(TrialsExchange, WhatItsAgentTookBackMayBeInvalidatedOnceMore) {
  Side a("a", listening()), b("b");
  const OptArgs to_a = at(a.port());
  ASSERT_TRUE(b.agent().send_local_md(&to_a).ok());
  ASSERT_TRUE(a.knows("b"));
  ASSERT_TRUE(b.agent().invalidate_local_md(&to_a).ok());
  ASSERT_TRUE(a.knows("b", false));
  EXPECT_TRUE(a.agent().invalidate_remote_md("b").ok());
  EXPECT_EQ(code_of(a.agent().invalidate_remote_md("b")), NixlCode::kNotFound);
}

TEST(TrialsExchange, APartWithoutConnectionDoesNotIntroduceAnAgent) {
  Side a("a"), b("b");
  const std::string part = b.agent().get_local_partial_md(b.list()).value();
  EXPECT_EQ(code_of(a.agent().load_remote_md(part).status()), NixlCode::kNotFound);
  EXPECT_FALSE(a.agent().check_remote_metadata("b"));
  const RegDescList none(MemType::kDram);
  ASSERT_TRUE(a.agent().load_remote_md(b.agent().get_local_partial_md(none).value()));
  EXPECT_TRUE(a.agent().load_remote_md(part));
  OptArgs with;
  with.include_connection = true;
  Side c("c");
  EXPECT_TRUE(c.agent().load_remote_md(b.agent().get_local_partial_md(b.list(), &with).value()));
}

class ExchangeByEtcd : public testing::Test {
 protected:
  void SetUp() override {
    if (!etcd_test::has_etcd()) GTEST_SKIP() << "etcd is not installed (Debian package etcd-server)";
    server_.start();
    ASSERT_TRUE(server_.await_ready());
  }
  AgentConfig config() const {
    AgentConfig config;
    config.environment.emplace();
    (*config.environment)["NIXL_ETCD_ENDPOINTS"] = server_.url();
    (*config.environment)["NIXL_ETCD_NAMESPACE"] = "/test/agents";
    (*config.environment)["HAWSER_ETCD_LEASE"] = "5s";
    return config;
  }
  EtcdServer server_;
};

TEST_F(ExchangeByEtcd, SentFetchedAndInvalidated) {
  Side a("a", config()), b("b", config());
  ASSERT_TRUE(a.agent().fetch_remote_md("b").ok());  // Before it is there: waited for.
  ASSERT_TRUE(b.agent().send_local_md().ok());
  EXPECT_TRUE(a.knows("b"));
  const auto look = etcd({.endpoints = {server_.endpoint()}}).value();
  EXPECT_NE(etcd_test::get(*look, "/test/agents/b/metadata"), "(not found)");
  ASSERT_TRUE(b.agent().invalidate_local_md().ok());
  EXPECT_TRUE(a.knows("b", false));
  EXPECT_TRUE(a.agent().invalidate_remote_md("b").ok()) << "the watch was faster";
  ASSERT_TRUE(a.agent().fetch_remote_md("b").ok());
  EXPECT_EQ(etcd_test::get(*look, "/test/agents/b/metadata"), "(not found)");
  // In order: what is sent after it stays.
  ASSERT_TRUE(b.agent().send_local_md().ok());
  ASSERT_TRUE(b.agent().invalidate_local_md().ok());
  ASSERT_TRUE(b.agent().send_local_md().ok());
  EXPECT_TRUE(eventually([&] { return etcd_test::get(*look, "/test/agents/b/metadata") != "(not found)"; }));

  OptArgs labelled;
  EXPECT_EQ(code_of(b.agent().send_local_partial_md(b.list(), &labelled)), NixlCode::kInvalidParam);
  labelled.metadata_label = "part";
  labelled.include_connection = true;
  ASSERT_TRUE(b.agent().send_local_partial_md(b.list(), &labelled).ok());
  EXPECT_TRUE(eventually([&] { return etcd_test::get(*look, "/test/agents/b/part") != "(not found)"; }));
  EXPECT_NE(etcd_test::get(*look, "/test/agents/b/metadata"), "(not found)");
}

TEST_F(ExchangeByEtcd, WhoseNameGoesOnWhereAnotherOnesEndsKeepsItsKeys) {
  Side a("a", config()), team("team", config()), member("team/1", config());
  for (Side* const one : {&team, &member}) ASSERT_TRUE(one->agent().send_local_md().ok());
  for (const char* const name : {"team", "team/1"}) ASSERT_TRUE(a.agent().fetch_remote_md(name).ok());
  EXPECT_TRUE(a.knows("team"));
  EXPECT_TRUE(a.knows("team/1"));
  const auto look = etcd({.endpoints = {server_.endpoint()}}).value();
  ASSERT_TRUE(team.agent().invalidate_local_md().ok());
  EXPECT_TRUE(a.knows("team", false));
  EXPECT_NE(etcd_test::get(*look, "/test/agents/team/1/metadata"), "(not found)");
  ASSERT_TRUE(member.agent().invalidate_local_md().ok());
  EXPECT_TRUE(a.knows("team/1", false));
}

/// Memory of `side` beyond what it begins with, and whether another knows it.
class More {
 public:
  explicit More(Side& side) : memory_(4096), addr_(reinterpret_cast<std::uintptr_t>(memory_.data())) {
    RegDescList list(MemType::kDram);
    list.add(addr_, memory_.size());
    registered_ = side.agent().register_memory(list).value();
  }
  const RegDescList& list() const { return registered_.list(); }
  bool known_to(Side& other, const std::string& name) const {
    XferDescList blocks(MemType::kDram);
    blocks.add(addr_, 1024);
    return other.agent().check_remote_metadata(name, &blocks);
  }

 private:
  std::vector<char> memory_;
  std::uintptr_t addr_;
  RegistrationHandle registered_;
};

OptArgs labelled(const std::string& label) {
  OptArgs opt;
  opt.metadata_label = label;
  opt.include_connection = true;
  return opt;
}

TEST_F(ExchangeByEtcd, WithALabelsKeyGoesWhatItBroughtAndWithTheLastOneTheAgent) {
  Side a("a", config()), b("b", config());
  More first(b), second(b);
  RegDescList both = second.list();
  both.add(b.list().begin()->addr, b.list().begin()->len);  // What both labels bring stays with either.
  RegDescList shared = first.list();
  shared.add(b.list().begin()->addr, b.list().begin()->len);
  const OptArgs one = labelled("one"), two = labelled("two");
  ASSERT_TRUE(b.agent().send_local_partial_md(shared, &one).ok());
  ASSERT_TRUE(b.agent().send_local_partial_md(both, &two).ok());
  ASSERT_TRUE(a.agent().fetch_remote_md("b", &one).ok());
  ASSERT_TRUE(a.agent().fetch_remote_md("b", &two).ok());
  XferDescList common(MemType::kDram);
  common.add(b.list().begin()->addr, 1024);
  const auto knows_common = [&] { return a.agent().check_remote_metadata("b", &common); };
  ASSERT_TRUE(eventually([&] { return first.known_to(a, "b") && second.known_to(a, "b") && knows_common(); }));

  const auto look = etcd({.endpoints = {server_.endpoint()}}).value();
  ASSERT_TRUE(etcd_test::await(*look, look->erase("/test/agents/b/one")).status.ok());
  EXPECT_TRUE(eventually([&] { return !first.known_to(a, "b"); }));
  EXPECT_TRUE(second.known_to(a, "b"));
  EXPECT_TRUE(knows_common());
  // It is followed on.
  ASSERT_TRUE(b.agent().send_local_partial_md(shared, &one).ok());
  EXPECT_TRUE(eventually([&] { return first.known_to(a, "b"); }));
  EXPECT_TRUE(second.known_to(a, "b"));
  ASSERT_TRUE(etcd_test::await(*look, look->erase("/test/agents/b/two")).status.ok());
  EXPECT_TRUE(eventually([&] { return !second.known_to(a, "b"); }));
  EXPECT_TRUE(first.known_to(a, "b"));
  ASSERT_TRUE(etcd_test::await(*look, look->erase("/test/agents/b/one")).status.ok());
  EXPECT_TRUE(a.knows("b", false));
}

TEST_F(ExchangeByEtcd, WhatTheMainKeyBringsStaysWithALabelsAndGoesWithIt) {
  Side a("a", config()), b("b", config());
  More more(b);
  const OptArgs one = labelled("one");
  ASSERT_TRUE(b.agent().send_local_partial_md(more.list(), &one).ok());
  ASSERT_TRUE(a.agent().fetch_remote_md("b", &one).ok());
  ASSERT_TRUE(eventually([&] { return more.known_to(a, "b"); }));
  ASSERT_TRUE(b.agent().send_local_md().ok());
  ASSERT_TRUE(a.agent().fetch_remote_md("b").ok());
  XferDescList main(MemType::kDram);
  main.add(b.list().begin()->addr, 1024);
  ASSERT_TRUE(eventually([&] { return a.agent().check_remote_metadata("b", &main); }));
  More late(b);
  const OptArgs two = labelled("two");
  ASSERT_TRUE(b.agent().send_local_partial_md(late.list(), &two).ok());
  ASSERT_TRUE(a.agent().fetch_remote_md("b", &two).ok());
  ASSERT_TRUE(eventually([&] { return late.known_to(a, "b"); }));

  const auto look = etcd({.endpoints = {server_.endpoint()}}).value();
  ASSERT_TRUE(etcd_test::await(*look, look->erase("/test/agents/b/one")).status.ok());
  ASSERT_TRUE(etcd_test::await(*look, look->erase("/test/agents/b/two")).status.ok());
  EXPECT_TRUE(eventually([&] { return !late.known_to(a, "b"); }));
  etcd_test::nap(500ms);  // The other key's second is over, too.
  EXPECT_TRUE(more.known_to(a, "b"));
  EXPECT_TRUE(a.agent().check_remote_metadata("b", &main));
  ASSERT_TRUE(b.agent().send_local_partial_md(late.list(), &two).ok());
  ASSERT_TRUE(eventually([&] { return late.known_to(a, "b"); }));
  ASSERT_TRUE(etcd_test::await(*look, look->erase("/test/agents/b/metadata")).status.ok());
  EXPECT_TRUE(a.knows("b", false));  // Although a label's is still there.
}

TEST_F(ExchangeByEtcd, ACloseTakesBackWhatWasPublished) {
  Side b("b", config());
  const auto look = etcd({.endpoints = {server_.endpoint()}}).value();
  ASSERT_TRUE(b.agent().send_local_md().ok());
  ASSERT_TRUE(eventually([&] { return etcd_test::get(*look, "/test/agents/b/metadata") != "(not found)"; }));
  XferDescList blocks(MemType::kDram);
  blocks.add(b.list().begin()->addr, b.list().begin()->len);
  const auto kept = b.agent().prepare_xfer_dlist("", blocks).value();
  ASSERT_TRUE(b.agent().close().ok());
  EXPECT_TRUE(eventually([&] { return etcd_test::get(*look, "/test/agents/b/metadata") == "(not found)"; }));
}

/// This program again, as agent "there".
class Process {
 public:
  explicit Process(const std::string& endpoint) {
    std::string self = "/proc/self/exe", mode = "--peer", argument = endpoint;
    char* words[] = {self.data(), mode.data(), argument.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, "/proc/self/exe", nullptr, nullptr, words, environ), 0);
  }
  ~Process() { kill(); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
};

TEST_F(ExchangeByEtcd, AProcessThatDiesIsForgottenAndItsSuccessorLoaded) {
  Side here("here", config());
  auto process = std::make_unique<Process>(server_.url());
  const auto look = etcd({.endpoints = {server_.endpoint()}}).value();
  ASSERT_TRUE(eventually([&] { return etcd_test::get(*look, "/test/agents/there/metadata") != "(not found)"; }));
  ASSERT_TRUE(here.agent().fetch_remote_md("there").ok());
  EXPECT_TRUE(here.knows("there"));
  process->kill();
  EXPECT_TRUE(here.knows("there", false));
  process = std::make_unique<Process>(server_.url());
  EXPECT_TRUE(here.knows("there"));
}

}  // namespace

/// The other process: publishes and waits to be killed.
int run_peer(const std::string& endpoint) {
  AgentConfig config;
  config.environment.emplace();
  (*config.environment)["NIXL_ETCD_ENDPOINTS"] = endpoint;
  (*config.environment)["NIXL_ETCD_NAMESPACE"] = "/test/agents";
  (*config.environment)["HAWSER_ETCD_LEASE"] = "5s";
  Side there("there", config);
  if (!there.agent().send_local_md().ok()) return 1;
  ::alarm(600);  // Nobody may forget it.
  for (;;) ::pause();
}

}  // namespace hawser::compat

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--peer") == 0) return hawser::compat::run_peer(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
