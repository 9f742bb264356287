#include "metrics/server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/address.h"
#include "base/fd.h"
#include "metrics/http_library.h"

namespace hawser::metrics {
namespace {

class MetricsServer : public testing::Test {
 protected:
  void SetUp() override {
    const Result<const HttpLibrary*> library = http_library();
    if (!library) GTEST_SKIP() << library.error().to_string();
  }
  static Source source(const char* name, std::uint64_t value) {
    return [name, value](Exposition& to) { to.counter("asked_total", "Asked", {{"agent", name}}, value); };
  }
};

base::Fd connect_to(const std::string& address) {
  const base::SocketAddress to = base::numeric_address(base::parse_host_port(address).value()).value();
  base::Fd socket(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), to.get(), to.size) != 0) socket.reset();
  return socket;
}

std::string ask(const std::string& address, const std::string& request) {
  const base::Fd socket = connect_to(address);
  if (!socket.valid()) return "no connection";
  if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
    return "not sent";
  }
  std::string answer;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::recv(socket.get(), buffer, sizeof buffer, 0)) > 0;) {
    answer.append(buffer, static_cast<std::size_t>(got));
  }
  return answer;
}

std::string get(const std::string& address, const std::string& path = "/metrics") {
  return ask(address, "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(MetricsServer, GivesThePageToWhoAsks) {
  const Entry entry = serve("127.0.0.1:0", source("a", 7)).value();
  const std::string page = get(entry.address());
  EXPECT_TRUE(has(page, "HTTP/1.1 200")) << page;
  EXPECT_TRUE(has(page, "Content-Type: text/plain; version=0.0.4")) << page;
  EXPECT_TRUE(has(page, "\r\n\r\n# HELP asked_total Asked\n")) << page;
  EXPECT_TRUE(has(page, "asked_total{agent=\"a\"} 7\n")) << page;
}

TEST_F(MetricsServer, AgentsOfOnePlaceShareAPage) {
  const Entry first = serve("127.0.0.1:0", source("a", 1)).value();
  {
    const Entry second = serve("127.0.0.1:0", source("b", 2)).value();
    EXPECT_EQ(first.address(), second.address());
    const std::string page = get(first.address());
    EXPECT_TRUE(has(page, "agent=\"a\"") && has(page, "agent=\"b\"")) << page;
  }
  EXPECT_FALSE(has(get(first.address()), "agent=\"b\"")) << "it has gone";
}

TEST_F(MetricsServer, TheLastOneEndsTheListener) {
  std::string address;
  {
    const Entry entry = serve("127.0.0.1:0", source("a", 1)).value();
    address = entry.address();
    EXPECT_TRUE(has(get(address), "200"));
  }
  EXPECT_EQ(get(address), "no connection");
}

TEST_F(MetricsServer, OtherPagesAndMethodsAreRefused) {
  const Entry entry = serve("127.0.0.1:0", source("a", 7)).value();
  EXPECT_TRUE(has(get(entry.address(), "/"), "HTTP/1.1 404"));
  EXPECT_TRUE(has(get(entry.address(), "/metrics/../x"), "HTTP/1.1 404"));
  const std::string posted =
      ask(entry.address(), "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(has(posted, "HTTP/1.1 405") && has(posted, "Allow: GET, HEAD")) << posted;
  const std::string head = ask(entry.address(), "HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(has(head, "HTTP/1.1 200")) << head;
  EXPECT_FALSE(has(head, "asked_total")) << head;
}

TEST_F(MetricsServer, OfARangeOfPortsAFreeOneIsTaken) {
  const Entry first = serve("127.0.0.1:0", source("a", 1)).value();
  const base::HostPort taken = base::parse_host_port(first.address()).value();
  if (taken.port > 65000) GTEST_SKIP() << "the kernel gave a port too near to the last one";
  const std::string begin = "127.0.0.1:" + std::to_string(taken.port);
  const Status refused = serve(begin, source("b", 1)).error();
  EXPECT_EQ(refused.code(), Code::kFailed);
  EXPECT_TRUE(has(refused.to_string(), "in use") && has(refused.to_string(), "range")) << refused.to_string();
  const Entry second = serve(begin + "-" + std::to_string(taken.port + 500), source("b", 1)).value();
  EXPECT_NE(second.address(), first.address());
  EXPECT_TRUE(has(get(second.address()), "agent=\"b\""));
}

TEST_F(MetricsServer, WrongPlacesAreNamed) {
  for (const char* wrong : {"", "9400", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:9401-9400",
                            "host:9400", "127.0.0.1:x", "eth0:9400"}) {
    const Result<Entry> refused = serve(wrong, source("a", 1));
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().code(), Code::kInvalid) << wrong;
  }
  EXPECT_EQ(serve("192.0.2.1:0", source("a", 1)).error().code(), Code::kFailed) << "no address of this host";
}

TEST_F(MetricsServer, SlowAndGarbledClientsTakeNobodysTurn) {
  const Entry entry = serve("127.0.0.1:0", source("a", 7)).value();
  std::vector<base::Fd> slow;
  for (unsigned i = 0; i + 1 < kConnectionsPerAddress; ++i) {
    slow.push_back(connect_to(entry.address()));
    ASSERT_EQ(::send(slow.back().get(), "GET /me", 7, MSG_NOSIGNAL), 7);
  }
  EXPECT_TRUE(has(get(entry.address()), "asked_total"));
  slow.clear();
  EXPECT_FALSE(has(ask(entry.address(), std::string(1 << 20, 'x')), "asked_total"));
  EXPECT_FALSE(has(ask(entry.address(), "GET /metrics\r\n\r\n"), "HTTP/1.1 500"));
  EXPECT_TRUE(has(get(entry.address()), "asked_total"));
}

TEST_F(MetricsServer, AnEntryGoesWhileSomebodyAsks) {
  const Entry kept = serve("127.0.0.1:0", source("kept", 1)).value();
  std::atomic<bool> ends{false};
  std::thread asks([&] {
    while (!ends) EXPECT_TRUE(has(get(kept.address()), "agent=\"kept\""));
  });
  for (int i = 0; i < 200; ++i) {
    auto value = std::make_unique<std::uint64_t>(5);
    const Entry entry = serve("127.0.0.1:0", [its = value.get()](Exposition& to) {
                          to.counter("asked_total", "Asked", {{"agent", "going"}}, *its);
                        }).value();
  }
  ends = true;
  asks.join();
}

TEST_F(MetricsServer, AForkedChildHasItsOwn) {
  const Entry entry = serve("127.0.0.1:0", source("parent", 1)).value();
  const pid_t child = ::fork();
  if (child == 0) {
    const Result<Entry> its = serve("127.0.0.1:0", source("child", 1));
    const bool good = its && its->address() != entry.address() && has(get(its->address()), "agent=\"child\"");
    ::_exit(good ? 0 : 1);
  }
  int state = 0;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
  EXPECT_TRUE(has(get(entry.address()), "agent=\"parent\""));
}

// Else the port would stay taken as long as any child lives.
TEST_F(MetricsServer, AForkedChildKeepsNoPort) {
  std::string place;
  int hold[2];
  ASSERT_EQ(::pipe(hold), 0);
  pid_t child = -1;
  {
    const Entry entry = serve("127.0.0.1:0", source("parent", 1)).value();
    place = entry.address();
    child = ::fork();
    if (child == 0) {
      ::close(hold[1]);
      char end = 0;
      ::_exit(static_cast<int>(::read(hold[0], &end, 1)));  // It lives until the parent closes its end.
    }
  }
  const Result<Entry> again = serve(place, source("parent", 2));
  EXPECT_TRUE(again) << again.error().to_string();
  ::close(hold[1]);
  int state = 1;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
  ::close(hold[0]);
}

}  // namespace
}  // namespace hawser::metrics
