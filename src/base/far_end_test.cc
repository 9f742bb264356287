// Real sockets: what the kernel says of them is what is tested.

#include "base/far_end.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/address.h"
#include "base/fd.h"

namespace hawser::base {
namespace {

struct Connection {
  Fd listener, opener, acceptor;
};

/// The opener is connected; `accept` takes it.
Connection connect_at(const std::string& listen, const std::string& connect, bool dual = false) {
  Connection made;
  SocketAddress at = numeric_address({.host = listen, .port = 0}).value();
  made.listener = Fd(::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int only = dual ? 0 : 1;
  if (at.family() == AF_INET6) ::setsockopt(made.listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
  if (::bind(made.listener.get(), at.get(), at.size) != 0 || ::listen(made.listener.get(), 8) != 0) return {};
  ::getsockname(made.listener.get(), at.get(), &at.size);
  SocketAddress to = numeric_address({.host = connect, .port = at.port()}).value();
  made.opener = Fd(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(made.opener.get(), to.get(), to.size) != 0) return {};
  return made;
}

void accept(Connection& made) { made.acceptor = Fd(::accept4(made.listener.get(), nullptr, nullptr, SOCK_CLOEXEC)); }

bool can_ask() {
  Connection made = connect_at("127.0.0.1", "127.0.0.1");
  accept(made);
  return far_end_of(made.opener.get()) != FarEnd::kCannotAsk;
}

bool is_nobody() { return ::geteuid() == 65534; }

TEST(FarEnd, IsTheSameUserFromBothEnds) {
  if (!can_ask() || is_nobody()) GTEST_SKIP() << "no NETLINK_SOCK_DIAG here, or the user is nobody";
  for (const auto& [listen, connect] : {std::pair("127.0.0.1", "127.0.0.1"), std::pair("::1", "::1"),
                                        std::pair("127.0.0.9", "127.0.0.9"), std::pair("::", "127.0.0.1")}) {
    SCOPED_TRACE(listen);
    Connection made = connect_at(listen, connect, true);
    if (!made.opener) continue;  // No IPv6 here.
    accept(made);
    std::string why;
    EXPECT_EQ(far_end_of(made.opener.get(), &why), FarEnd::kSameUser) << why;
    EXPECT_EQ(far_end_of(made.acceptor.get(), &why), FarEnd::kSameUser) << why;
  }
}

TEST(FarEnd, IsNobodyUntilAcceptedAndAfterTheEnd) {
  if (!can_ask()) GTEST_SKIP() << "no NETLINK_SOCK_DIAG here";
  Connection made = connect_at("127.0.0.1", "127.0.0.1");
  EXPECT_EQ(far_end_of(made.opener.get()), FarEnd::kNobody);
  accept(made);
  EXPECT_NE(far_end_of(made.opener.get()), FarEnd::kNobody);
  made.opener.reset();
  EXPECT_EQ(far_end_of(made.acceptor.get()), FarEnd::kNobody);
}

TEST(FarEnd, IsAnotherUser) {
  if (!can_ask()) GTEST_SKIP() << "no NETLINK_SOCK_DIAG here";
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a socket of another user";
  Connection made = connect_at("127.0.0.1", "127.0.0.1");
  const pid_t child = ::fork();
  if (child == 0) {
    // Its socket is of another user; ours is what it sees of us.
    if (::setresuid(1234, 1234, 1234) != 0) ::_exit(9);
    SocketAddress to;
    to.size = sizeof to.storage;
    ::getsockname(made.listener.get(), to.get(), &to.size);
    const Fd mine(::socket(AF_INET, SOCK_STREAM, 0));
    if (::connect(mine.get(), to.get(), to.size) != 0) ::_exit(8);
    char byte = 0;
    (void)::read(mine.get(), &byte, 1);
    ::_exit(far_end_of(mine.get()) == FarEnd::kOtherUser ? 0 : 1);
  }
  accept(made);  // Our own.
  accept(made);  // The child's.
  std::string why;
  EXPECT_EQ(far_end_of(made.acceptor.get(), &why), FarEnd::kOtherUser);
  EXPECT_NE(why.find("1234"), std::string::npos) << why;
  EXPECT_EQ(::write(made.acceptor.get(), "x", 1), 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(FarEnd, IsElsewhereWhereItIsNoLoopbackConnection) {
  const Fd alone(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(far_end_of(alone.get()), FarEnd::kElsewhere);
  EXPECT_EQ(far_end_of(-1), FarEnd::kElsewhere);
}

}  // namespace
}  // namespace hawser::base
