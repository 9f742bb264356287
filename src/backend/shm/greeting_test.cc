#include "backend/shm/greeting.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <span>
#include <string>
#include <variant>

#include "backend/hello_identity.h"
#include "backend/shm/fork_list.h"

namespace hawser::backend::shm {
namespace {

/// Two ends in one process, each with its identity and gates, on a pair of sockets.
class ShmGreetingTest : public ::testing::Test {
 protected:
  struct Side {
    explicit Side(const std::string& name) {
      identity.name = name;
      identity.incarnation = base::random_id128();
      identity.driven = true;
    }
    Greeting::Uses uses() const {
      return {.identity = identity, .probe = probe, .gates = *gates, .ring_bytes = kRingBytesMin};
    }
    Identity identity;
    Probe probe{.address = 7, .value = {8, 9}};
    ForkList forks;
    std::unique_ptr<Gates> gates = Gates::make(forks, false).value();
  };

  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    near_ = base::Fd(ends[0]);
    far_ = base::Fd(ends[1]);
  }
  template <typename Message>
  Message read(int socket) {
    EXPECT_EQ(receive_packet(socket, &packet_), Io::kDone);
    const auto control = decode_control(packet_.bytes(), {});
    EXPECT_TRUE(control);
    return std::get<Message>(*control);
  }
  /// The opener's verdict on an answer with this hello.
  Status verdict_on(const wire::Hello& hello, const Greeting& opener) {
    Accept accept;
    accept.hello = hello;
    const int gate = acceptor_.gates->peer_fd();
    const std::string bytes = encode(accept);
    EXPECT_EQ(send_packet(far_.get(), std::as_bytes(std::span<const char>(bytes)), {&gate, 1}), Io::kDone);
    const auto heard = read<Accept>(near_.get());
    return opener.take_accept(packet_, heard).error();
  }
  wire::Hello good_answer() const {
    wire::Hello hello = hello_of(acceptor_.identity);
    hello.session = greeting_.session();
    return hello;
  }

  Side opener_{"opener"}, acceptor_{"acceptor"};
  Greeting greeting_{opener_.uses(),
                     {.socket = "where", .peer = "acceptor", .incarnation = acceptor_.identity.incarnation}};
  base::Fd near_, far_;
  Packet packet_;
};

TEST_F(ShmGreetingTest, BothEndsHoldOneLinkAndTheDoorsCrosswise) {
  const Greeting::Ends ours = greeting_.say_open(near_.get()).value();
  const auto open = read<Open>(far_.get());
  EXPECT_EQ(open.hello.name, "opener");
  EXPECT_EQ(open.hello.session, greeting_.session());
  EXPECT_EQ(open.hello.expects, acceptor_.identity.incarnation);
  EXPECT_EQ(open.probe.value, opener_.probe.value);
  const Greeting::Taken theirs = Greeting::take_open(packet_, open).value();
  ours.link.my_pin().store(5);
  EXPECT_EQ(theirs.ends.link.their_pin().load(), 5u);
  const std::uint64_t ring = 1;
  ASSERT_EQ(::write(theirs.ends.peer_door.get(), &ring, sizeof(ring)), static_cast<ssize_t>(sizeof(ring)));
  std::uint64_t heard = 0;
  EXPECT_EQ(::read(ours.my_door.get(), &heard, sizeof(heard)), static_cast<ssize_t>(sizeof(heard)));

  const Greeting answer(acceptor_.uses(), open.hello.session);
  ASSERT_TRUE(answer.say_accept(far_.get()).ok());
  const auto accept = read<Accept>(near_.get());
  EXPECT_EQ(identity_of(accept.hello).name, "acceptor");
  EXPECT_TRUE(identity_of(accept.hello).driven);
  EXPECT_TRUE(greeting_.take_accept(packet_, accept));
}

TEST_F(ShmGreetingTest, AnAnswerMustBeOfWhomItLooksFor) {
  EXPECT_TRUE(verdict_on(good_answer(), greeting_).ok());
  wire::Hello other = good_answer();
  other.session = {1, 1};
  EXPECT_EQ(verdict_on(other, greeting_).code(), Code::kCorrupt);
  other = good_answer();
  other.incarnation = {1, 1};
  const Status restarted = verdict_on(other, greeting_);
  EXPECT_EQ(restarted.message(), "'acceptor' restarted: its incarnation is another one");
  EXPECT_EQ(restarted.scope(), Scope::kPeer);
  other = good_answer();
  other.name = "stranger";
  EXPECT_EQ(verdict_on(other, greeting_).message(), "the agent there is called 'stranger', not 'acceptor'");
}

TEST_F(ShmGreetingTest, WhoLooksForNobodyTakesWhoeverIsThere) {
  const Greeting any(opener_.uses(), Greeting::Wanted{.socket = "where", .peer = {}, .incarnation = {}});
  wire::Hello hello = hello_of(acceptor_.identity);
  hello.session = any.session();
  EXPECT_TRUE(verdict_on(hello, any).ok());
}

TEST_F(ShmGreetingTest, ARefusalIsToldAndEndsNothingForGoodWhereItMayPass) {
  const Status shut = verdict_on(refusal_of(acceptor_.identity, Status(Code::kDenied, "not you")).hello, greeting_);
  EXPECT_EQ(shut.code(), Code::kDenied);
  EXPECT_EQ(shut.scope(), Scope::kPeer);
  EXPECT_EQ(shut.message(), "the agent at 'where' refused: not you");
  EXPECT_EQ(verdict_on(refusal_of(acceptor_.identity, Status(Code::kBusy, "full")).hello, greeting_).scope(),
            Scope::kPath);
}

TEST_F(ShmGreetingTest, WhoIsTurnedAwayBeforeItSpokeHearsWhy) {
  const std::string bytes = encode(refusal_of(acceptor_.identity, Status(Code::kBusy, "no descriptors")));
  ASSERT_EQ(send_packet(far_.get(), std::as_bytes(std::span<const char>(bytes)), {}), Io::kDone);
  far_.reset();
  EXPECT_EQ(greeting_.say_open(near_.get()).error().code(), Code::kBusy);
}

TEST_F(ShmGreetingTest, AnAcceptorWithoutGatesAndAnOpenerWithoutALinkAreCorrupt) {
  Accept accept;
  accept.hello = good_answer();
  packet_.fd_count = 0;
  EXPECT_EQ(greeting_.take_accept(packet_, accept).error().code(), Code::kCorrupt);
  EXPECT_EQ(Greeting::take_open(packet_, Open()).error().code(), Code::kCorrupt);
}

TEST_F(ShmGreetingTest, ABlockingDoorIsRefused) {
  ASSERT_TRUE(greeting_.say_open(near_.get()));
  const auto open = read<Open>(far_.get());
  const int door = packet_.fds[3].get();
  ASSERT_EQ(::fcntl(door, F_SETFL, ::fcntl(door, F_GETFL) & ~O_NONBLOCK), 0);
  EXPECT_EQ(Greeting::take_open(packet_, open).error().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace hawser::backend::shm
