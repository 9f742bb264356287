#include "backend/shm/peer_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <vector>

namespace hawser::backend::shm {
namespace {

class PeerSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    socket_.emplace(watches_, forks_, this);
    socket_->take(ForkFd(base::Fd(ends[0]), forks_));
    far_ = base::Fd(ends[1]);
  }
  /// What the port is told now.
  std::vector<Watch::Kind> told() {
    std::vector<Watch::Kind> kinds;
    (void)watches_.look([&](const Watch& watch, std::uint32_t) {
      EXPECT_EQ(watch.owner, this);
      kinds.push_back(watch.kind);
    });
    return kinds;
  }
  bool say_from_far(const std::string& text) {
    return send_packet(far_.get(), std::as_bytes(std::span<const char>(text)), {}) == Io::kDone;
  }

  ForkList forks_;
  Watches watches_{std::move(base::Epoll::open().value())};
  std::optional<PeerSocket> socket_;
  base::Fd far_;
  Packet packet_;
};

TEST_F(PeerSocketTest, ItKnowsTheProcessAtTheOtherEnd) {
  ASSERT_TRUE(socket_->look_at_peer().ok());
  EXPECT_EQ(socket_->credentials().process, ::getpid());
  EXPECT_EQ(socket_->credentials().user, ::geteuid());
}

TEST_F(PeerSocketTest, ThePortIsToldOfPacketsAndOfTheEnd) {
  ASSERT_TRUE(socket_->watch().ok());
  EXPECT_TRUE(told().empty());
  ASSERT_TRUE(say_from_far("word"));
  EXPECT_EQ(told(), std::vector{Watch::Kind::kSocket});
  EXPECT_EQ(socket_->receive(&packet_), Io::kDone);
  EXPECT_EQ(packet_.size, 4u);
  EXPECT_TRUE(told().empty());
  far_.reset();
  EXPECT_EQ(told(), std::vector{Watch::Kind::kSocket});
}

TEST_F(PeerSocketTest, AClosedOneIsWatchedNoMore) {
  ASSERT_TRUE(socket_->watch().ok());
  socket_->close();
  EXPECT_FALSE(*socket_);
  EXPECT_TRUE(told().empty());
  EXPECT_FALSE(say_from_far("word"));
}

TEST_F(PeerSocketTest, TheLastWordIsHeardAndThenTheEnd) {
  socket_->say_last("bye");
  EXPECT_EQ(receive_packet(far_.get(), &packet_), Io::kDone);
  EXPECT_EQ(packet_.size, 3u);
  EXPECT_EQ(receive_packet(far_.get(), &packet_), Io::kEnd);
}

TEST_F(PeerSocketTest, OneThatIsGivenBackStaysOpen) {
  const ForkFd taken = socket_->give_back();
  EXPECT_FALSE(*socket_);
  socket_.reset();
  EXPECT_TRUE(say_from_far("word"));
}

TEST_F(PeerSocketTest, WhileAnAnswerHasNoRoomTheSocketIsNotReadUntilThereIs) {
  ASSERT_TRUE(socket_->watch().ok());
  const std::string filler(1024, 'x');
  while (socket_->send(std::as_bytes(std::span<const char>(filler))) == Io::kDone) continue;
  RegionTable table(4);
  const Options options;
  RegionServer server(table, options);
  server.answer(Bind{7, 1, 1, {}}, {});
  ASSERT_TRUE(socket_->send_reply(server).ok());
  ASSERT_TRUE(server.has_reply());
  ASSERT_TRUE(say_from_far("word"));
  EXPECT_TRUE(told().empty()) << "what came meanwhile waits";
  while (receive_packet(far_.get(), &packet_) == Io::kDone) continue;
  EXPECT_EQ(told(), std::vector{Watch::Kind::kSocket}) << "there is room";
  ASSERT_TRUE(socket_->send_reply(server).ok());
  EXPECT_FALSE(server.has_reply());
  EXPECT_EQ(told(), std::vector{Watch::Kind::kSocket}) << "it is read again";
}

}  // namespace
}  // namespace hawser::backend::shm
