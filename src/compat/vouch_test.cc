#include "compat/vouch.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/fd.h"

namespace hawser::compat {
namespace {

const base::Id128 kCookie = {1, 2};
const Ends kEnds = {.asker = "127.0.0.1:1", .listener = "127.0.0.1:2"};

TEST(Vouch, FitsItsOwnConnectionRoleAndCookieAlone) {
  const Nonces nonces = {.listener = fresh_nonce(), .asker = fresh_nonce()};
  ASSERT_EQ(nonces.asker.size(), kNonceBytes);
  const std::string proof = vouch(kCookie, Role::kAsker, nonces, kEnds);
  EXPECT_EQ(proof.size(), kVouchBytes);
  EXPECT_TRUE(is_vouch(proof, kCookie, Role::kAsker, nonces, kEnds));
  EXPECT_FALSE(is_vouch(proof, {1, 3}, Role::kAsker, nonces, kEnds)) << "another cookie";
  EXPECT_FALSE(is_vouch(proof, kCookie, Role::kListener, nonces, kEnds)) << "sent back";
  EXPECT_FALSE(is_vouch(proof, kCookie, Role::kAsker, {nonces.listener, fresh_nonce()}, kEnds)) << "used again";
  EXPECT_FALSE(is_vouch(proof, kCookie, Role::kAsker, {fresh_nonce(), nonces.asker}, kEnds)) << "used again";
  EXPECT_FALSE(is_vouch(proof, kCookie, Role::kAsker, nonces, {"127.0.0.1:3", kEnds.listener})) << "passed on";
  EXPECT_FALSE(is_vouch(proof, kCookie, Role::kAsker, nonces, {kEnds.asker, "127.0.0.1:3"})) << "passed on";
  EXPECT_FALSE(is_vouch(std::string_view(proof).substr(1), kCookie, Role::kAsker, nonces, kEnds)) << "cut";
  EXPECT_FALSE(is_vouch({}, kCookie, Role::kAsker, nonces, kEnds));
}

// A listener for both families sees an IPv4 asker in the form of IPv6.
TEST(Vouch, BothEndsNameTheConnectionAlike) {
  const base::Fd listener(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener) GTEST_SKIP() << "this machine has no IPv6";
  sockaddr_in6 any = {};
  any.sin6_family = AF_INET6;
  socklen_t size = sizeof any;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&any), size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&any), &size), 0);
  const base::Fd asker(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in there = {};
  there.sin_family = AF_INET;
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  there.sin_port = any.sin6_port;
  ASSERT_EQ(::connect(asker.get(), reinterpret_cast<sockaddr*>(&there), sizeof there), 0);
  const base::Fd taken(::accept(listener.get(), nullptr, nullptr));
  const Ends here = ends_of(asker.get(), Role::kAsker).value(), other = ends_of(taken.get(), Role::kListener).value();
  EXPECT_EQ(here.asker, other.asker);
  EXPECT_EQ(here.listener, other.listener);
  EXPECT_EQ(here.listener, "127.0.0.1:" + std::to_string(ntohs(any.sin6_port)));
}

}  // namespace
}  // namespace hawser::compat
