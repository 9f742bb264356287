#include "backend/shm/visitors.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "backend/shm/place.h"
#include "base/test_folder.h"

namespace hawser::backend::shm {
namespace {

class VisitorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    us_.name = "us";
    us_.incarnation = {2, 2};
    place_ = Place::open({.folder = folder_.path()}, us_.incarnation, forks_).value();
    ASSERT_TRUE(visitors_.listen(place_->socket()).ok());
  }
  void look() {
    (void)watches_.look([this](const Watch& watch, std::uint32_t) {
      if (watch.kind == Watch::Kind::kListener) return visitors_.on_listener(now_);
      visitors_.on_visitor(*static_cast<Visitors::Visitor*>(watch.owner), now_);
    });
    visitors_.turn(now_);
  }
  base::Fd knock() { return connect_to(place_->path()).value(); }
  static bool say(const base::Fd& socket, const std::string& bytes) {
    return send_packet(socket.get(), std::as_bytes(std::span<const char>(bytes)), {}) == Io::kDone;
  }
  bool say_open(const base::Fd& socket) {
    Open open;
    open.ring_bytes = kRingBytesMin;
    open.hello.name = "friend";
    open.hello.incarnation = {1, 1};
    open.hello.session = {3, 3};
    open.hello.expects = expects_;
    return say(socket, encode(open));
  }
  /// With what it was refused; kOk: it was not.
  Code refusal(const base::Fd& socket) {
    Packet packet;
    if (receive_packet(socket.get(), &packet) != Io::kDone) return Code::kOk;
    return std::get<Accept>(*decode_control(packet.bytes(), {})).hello.status;
  }
  bool is_gone(const base::Fd& socket) {
    Packet packet;
    return receive_packet(socket.get(), &packet) == Io::kEnd;
  }

  base::TestFolder folder_{"/tmp/hawser-test"};
  ForkList forks_;
  Watches watches_{std::move(base::Epoll::open().value())};
  Identity us_;
  base::Logger log_;
  base::Id128 expects_;
  Status verdict_;
  std::vector<std::string> came_;
  std::vector<ForkFd> taken_;
  std::unique_ptr<Place> place_;
  Visitors visitors_{{.watches = watches_,
                      .forks = forks_,
                      .identity = us_,
                      .log = log_,
                      .admit = [this](ForkFd& socket, Packet&, const Open& open) {
                        came_.push_back(open.hello.name);
                        if (verdict_.ok()) taken_.push_back(std::move(socket));
                        return verdict_;
                      }}};
  Instant now_ = Instant::from_ns(10'000'000'000);
};

TEST_F(VisitorsTest, WhoSaysOpenComesIn) {
  const base::Fd socket = knock();
  look();
  EXPECT_TRUE(came_.empty());
  ASSERT_TRUE(say_open(socket));
  look();
  EXPECT_EQ(came_, std::vector<std::string>{"friend"});
  EXPECT_EQ(refusal(socket), Code::kOk);
  EXPECT_EQ(visitors_.next_deadline(), Instant::max());
}

TEST_F(VisitorsTest, WhoMayNotComeInIsToldWhy) {
  verdict_ = Status(Code::kDenied, "not you");
  const base::Fd socket = knock();
  ASSERT_TRUE(say_open(socket));
  look();
  look();
  EXPECT_EQ(refusal(socket), Code::kDenied);
  EXPECT_TRUE(is_gone(socket));
}

TEST_F(VisitorsTest, WhoLooksForAnotherIncarnationOrSaysNoHelloIsTurnedAway) {
  expects_ = {9, 9};
  const base::Fd late = knock(), rude = knock();
  ASSERT_TRUE(say_open(late) && say(rude, "abc"));
  look();
  look();
  EXPECT_EQ(refusal(late), Code::kDisconnected);
  EXPECT_EQ(refusal(rude), Code::kCorrupt);
  EXPECT_TRUE(came_.empty());
}

TEST_F(VisitorsTest, WhoSaysNothingIsLetGoOf) {
  const base::Fd socket = knock();
  look();
  ASSERT_GT(visitors_.next_deadline(), now_);
  now_ = visitors_.next_deadline();
  look();
  EXPECT_TRUE(is_gone(socket));
}

TEST_F(VisitorsTest, TheLongestSilentGoWhereTooManyCame) {
  std::vector<base::Fd> sockets;
  for (std::size_t i = 0; i < Visitors::kMax + 1; ++i) {
    sockets.push_back(knock());
    look();
  }
  EXPECT_TRUE(is_gone(sockets.front()));
  EXPECT_FALSE(is_gone(sockets[1]));
  EXPECT_FALSE(is_gone(sockets.back()));
}

TEST_F(VisitorsTest, NobodyComesInOnceItIsClosed) {
  const base::Fd socket = knock();
  look();
  visitors_.close();
  look();
  EXPECT_TRUE(is_gone(socket));
  EXPECT_EQ(visitors_.next_deadline(), Instant::max());
}

}  // namespace
}  // namespace hawser::backend::shm
