#include "backend/quic/udp_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace hawser::backend::quic {
namespace {

base::SocketAddress address(const std::string& host, std::uint16_t port = 0) {
  return base::numeric_address({host, port}).value();
}

/// Over each family that this host has.
class UdpSocketTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    at_ = address(GetParam());
    auto listening = UdpSocket::listen(at_, {}, ledger_);
    if (!listening) GTEST_SKIP() << "this host has no " << GetParam();
    listener_ = *std::move(listening);
    opener_ = UdpSocket::connect(at_, {}, ledger_).value();
  }
  static bool await(const UdpSocket& socket, short what = POLLIN) {
    pollfd one = {.fd = socket.fd(), .events = what, .revents = 0};
    return ::poll(&one, 1, 2000) == 1;
  }
  UdpSocket::Received receive(UdpSocket& socket) {
    EXPECT_TRUE(await(socket));
    return socket.receive(buffer_).value();
  }
  static std::vector<std::byte> bytes_of(std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
    return bytes;
  }

  const std::shared_ptr<FdLedger> ledger_ = std::make_shared<FdLedger>();
  base::SocketAddress at_;
  std::unique_ptr<UdpSocket> listener_, opener_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kReceiveBytesMax);
};

TEST_P(UdpSocketTest, AListenerLearnsItsPortAndNobodyElseGetsIt) {
  EXPECT_NE(at_.port(), 0);
  EXPECT_EQ(listener_->route().local.port(), at_.port());
  EXPECT_FALSE(listener_->is_connected());
  base::SocketAddress again = at_;
  const auto second = UdpSocket::listen(again, {}, ledger_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::kBusy);
  EXPECT_FALSE(second.error().advice().empty());
}

TEST_P(UdpSocketTest, AConnectedSocketKnowsBothEnds) {
  EXPECT_TRUE(opener_->is_connected());
  EXPECT_TRUE(is_same_address(opener_->route().remote, at_));
  EXPECT_NE(opener_->route().local.port(), 0);
}

TEST_P(UdpSocketTest, AHostWithTheAddressOfBeforeHasNotMoved) { EXPECT_EQ(opener_->moved(), nullptr); }

TEST_P(UdpSocketTest, ItGoesOnAsAnotherSocket) {
  auto other = UdpSocket::connect(at_, {}, ledger_).value();
  const int old_fd = opener_->fd(), fd = other->fd();
  const base::SocketAddress before = opener_->route().local, after = other->route().local;
  opener_->become(*other);
  other.reset();
  EXPECT_EQ(opener_->fd(), fd);
  EXPECT_EQ(::fcntl(old_fd, F_GETFD), -1) << "the descriptor of before was not closed";
  EXPECT_FALSE(is_same_address(opener_->route().local, before));
  const auto said = bytes_of(100);
  ASSERT_TRUE(opener_->send(opener_->route(), said, said.size()));
  EXPECT_TRUE(is_same_address(receive(*listener_).route.remote, after));
  ledger_->close_all();  // As a forked child does.
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1) << "the ledger does not know the new descriptor";
}

TEST_P(UdpSocketTest, WhereNothingIsAllIsRead) {
  EXPECT_TRUE(listener_->receive(buffer_).value().is_all);
  EXPECT_TRUE(opener_->receive(buffer_).value().is_all);
}

TEST_P(UdpSocketTest, ADatagramComesWithItsRouteAndIsAnswered) {
  const auto said = bytes_of(1200);
  ASSERT_TRUE(opener_->send(opener_->route(), said, said.size()));
  const UdpSocket::Received got = receive(*listener_);
  EXPECT_TRUE(std::ranges::equal(got.bytes, said));
  EXPECT_EQ(got.segment, said.size());
  EXPECT_TRUE(is_same_address(got.route.remote, opener_->route().local));
  EXPECT_TRUE(is_same_address(got.route.local, at_));
  const auto answer = bytes_of(100);
  ASSERT_TRUE(listener_->send(got.route, answer, answer.size()));
  EXPECT_TRUE(std::ranges::equal(receive(*opener_).bytes, answer));
}

// One call sends 64, the last of them shorter; however the kernel puts them together, each begins where it says.
TEST_P(UdpSocketTest, ManyDatagramsOfOneCallComeWholeAndInOrder) {
  constexpr std::size_t kSegment = 1000;
  const auto said = bytes_of(63 * kSegment + 17);
  ASSERT_TRUE(opener_->send(opener_->route(), said, kSegment));
  std::vector<std::byte> all;
  while (all.size() < said.size()) {
    const UdpSocket::Received got = receive(*listener_);
    ASSERT_FALSE(got.is_all);
    ASSERT_TRUE(got.segment == kSegment || all.size() + got.bytes.size() == said.size()) << got.segment;
    all.insert(all.end(), got.bytes.begin(), got.bytes.end());
  }
  EXPECT_EQ(all, said);
}

TEST_P(UdpSocketTest, OnLoopbackADatagramMayHaveAllThatItsInterfaceTakes) {
  EXPECT_GT(opener_->datagram_max(), 65'000u);
  EXPECT_LE(opener_->datagram_max(), 65'507u) << "what UDP over IP can say";
  const auto largest = bytes_of(16 * 1024);
  ASSERT_TRUE(opener_->send(opener_->route(), largest, largest.size()));
  EXPECT_TRUE(std::ranges::equal(receive(*listener_).bytes, largest));
}

TEST_P(UdpSocketTest, WhoHasGoneIsToldToTheConnectedEnd) {
  listener_.reset();
  const auto said = bytes_of(100);
  ASSERT_TRUE(opener_->send(opener_->route(), said, said.size()));
  ASSERT_TRUE(await(*opener_));
  const auto got = opener_->receive(buffer_);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), Code::kDisconnected);
  EXPECT_EQ(got.error().scope(), Scope::kPeer) << "its own kernel says that nobody listens";
  EXPECT_TRUE(opener_->receive(buffer_).value().is_all) << "once";
}

TEST_P(UdpSocketTest, AListenerHearsWhomItCouldNotReachAndGoesOn) {
  const auto said = bytes_of(100);
  ASSERT_TRUE(opener_->send(opener_->route(), said, said.size()));
  const Route back = receive(*listener_).route;
  opener_.reset();
  ASSERT_TRUE(listener_->send(back, said, said.size()));
  ASSERT_TRUE(await(*listener_, POLLERR));
  const auto news = listener_->take_undelivered();
  ASSERT_TRUE(news);
  EXPECT_TRUE(news->is_refused);
  EXPECT_TRUE(is_same_address(news->to, back.remote));
  EXPECT_FALSE(listener_->take_undelivered());
  const auto other = UdpSocket::connect(at_, {}, ledger_).value();
  ASSERT_TRUE(other->send(other->route(), said, said.size()));
  EXPECT_TRUE(std::ranges::equal(receive(*listener_).bytes, said));
}

TEST_P(UdpSocketTest, ItsBuffersAreAsLargeAsAskedFor) {
  base::SocketAddress any = address(GetParam());
  const auto small = UdpSocket::listen(any, {.send = 64 * 1024, .receive = 64 * 1024}, ledger_).value();
  EXPECT_GE(small->receive_buffer(), 64u * 1024);
  EXPECT_LE(small->receive_buffer(), 2u * 64 * 1024) << "the kernel counts its own share, too";
  EXPECT_GE(listener_->receive_buffer(), small->receive_buffer());
}

INSTANTIATE_TEST_SUITE_P(Families, UdpSocketTest, testing::Values("127.0.0.1", "::1"),
                         [](const auto& each) { return each.param == "::1" ? "ip6" : "ip4"; });

// A listener on all addresses answers from the one that was asked: else a connected opener would not hear it.
TEST(UdpSocket, AnAnswerLeavesFromTheAddressThatWasAsked) {
  const auto ledger = std::make_shared<FdLedger>();
  base::SocketAddress all = address("0.0.0.0");
  const auto listener = UdpSocket::listen(all, {}, ledger).value();
  const auto opener = UdpSocket::connect(address("127.0.0.2", all.port()), {}, ledger).value();
  const std::array<std::byte, 10> said = {};
  ASSERT_TRUE(opener->send(opener->route(), said, said.size()));
  std::vector<std::byte> buffer(kReceiveBytesMax);
  pollfd one = {.fd = listener->fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&one, 1, 2000), 1);
  const UdpSocket::Received got = listener->receive(buffer).value();
  EXPECT_TRUE(is_same_address(got.route.local, address("127.0.0.2", all.port()))) << base::to_string(got.route.local);
  ASSERT_TRUE(listener->send(got.route, said, said.size()));
  one = {.fd = opener->fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&one, 1, 2000), 1);
  EXPECT_EQ(opener->receive(buffer).value().bytes.size(), said.size());
}

TEST(UdpSocket, AnAddressOfAnotherHostCannotBeListenedAt) {
  base::SocketAddress foreign = address("192.0.2.1");
  const auto socket = UdpSocket::listen(foreign, {}, std::make_shared<FdLedger>());
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code(), Code::kInvalid);
  EXPECT_NE(socket.error().message().find("192.0.2.1"), std::string_view::npos) << socket.error().to_string();
}

}  // namespace
}  // namespace hawser::backend::quic
