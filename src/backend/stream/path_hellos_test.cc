#include "backend/stream/path_hellos.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "backend/region_table.h"
#include "backend/stream/cover.h"
#include "backend/stream/memory_network.h"
#include "backend/stream/test_context.h"
#include "base/try.h"

namespace hawser::backend::stream {
namespace {

/// An opener's hellos, and an acceptor by hand that answers what the test says. Both are open to all.
class PathHellosTest : public testing::Test {
 protected:
  PathHellosTest() {
    us_.name = "us";
    us_.incarnation = {1, 1};
    terms_.streams = 3;
    terms_.session = {7, 7};
    terms_.token = {8, 8};
    terms_.supersedes = {9, 9};
    terms_.expects = {2, 2};
    peer_.name = "peer";
    answer_.name = "peer";
    answer_.incarnation = {2, 2};
    answer_.session = {7, 7};
    answer_.security = level_of(Security::kNone);
  }

  /// Says hello on that stream, and takes the answer.
  Status exchange(unsigned index = 0, Instant deadline = Instant::max()) {
    shake_ = std::make_unique<Handshake>(network_.connect("there").value(), versions_of(us_));
    Handshake other(there_.accept(), versions_of(us_));
    for (int i = 0; i < 10; ++i) {
      HAWSER_TRY(hellos_.turn(*shake_, index, deadline, now_));
      if (is_mute_) continue;
      HAWSER_TRY(other.turn());
      if (other.heard() && !other.has_spoken()) {
        heard_ = other.hello();
        if (proves_nothing_) {
          other.say(answer_);
        } else {
          HAWSER_TRY(other.admit(answer_, {}, true, there_));
        }
      }
    }
    return Status();
  }

  Identity us_, peer_;
  std::string name_ = "peer";
  base::Logger log_;
  RegionTable regions_{16};
  Context context_ = test_context(us_, regions_, log_);
  const PortOptions options_{.backend = "memory", .listen = "where we listen"};
  MemorySwitch switch_;
  MemoryNetwork network_{switch_, "here"};
  MemoryNetwork there_{switch_, "there"};
  SessionTerms terms_;
  PathHellos hellos_{
      {.context = context_, .options = options_, .network = network_, .terms = terms_, .peer = peer_, .name = name_}};
  std::unique_ptr<Handshake> shake_;
  wire::Hello answer_, heard_;
  bool is_mute_ = false, proves_nothing_ = false;
  const Instant now_ = Instant::from_ns(10'000'000'000);
};

TEST_F(PathHellosTest, TheHelloSaysWhoAndWhichSession) {
  ASSERT_TRUE(exchange().ok());
  EXPECT_TRUE(hellos_.is_through(*shake_));
  EXPECT_EQ(heard_.name, "us");
  EXPECT_EQ(heard_.incarnation, us_.incarnation);
  EXPECT_EQ(heard_.session, terms_.session);
  EXPECT_EQ(heard_.token, terms_.token);
  EXPECT_EQ(heard_.expects, terms_.expects);
  EXPECT_EQ(heard_.supersedes, terms_.supersedes);
  EXPECT_EQ(heard_.streams, 3u);
  EXPECT_EQ(heard_.listen, "where we listen");
}

TEST_F(PathHellosTest, AFurtherStreamSupersedesNothing) {
  ASSERT_TRUE(exchange(2).ok());
  EXPECT_EQ(heard_.stream, 2u);
  EXPECT_TRUE(heard_.supersedes.is_zero());
}

TEST_F(PathHellosTest, AnotherIncarnationOfThePeerHasRestarted) {
  answer_.incarnation = {3, 3};
  const Status told = exchange();
  EXPECT_EQ(told.code(), Code::kDisconnected);
  EXPECT_EQ(told.scope(), Scope::kPeer);
  EXPECT_FALSE(hellos_.is_doubted());
  EXPECT_FALSE(hellos_.is_the_peer(answer_));
}

TEST_F(PathHellosTest, AnotherAgentIsNotThePeer) {
  answer_.incarnation = {3, 3};
  answer_.name = "stranger";
  EXPECT_EQ(exchange().message(), "another agent answers there, 'stranger'");
}

TEST_F(PathHellosTest, WithoutAnIncarnationTheNameTells) {
  terms_.expects = {};
  answer_.incarnation = {3, 3};
  EXPECT_TRUE(exchange().ok());
  answer_.name = "stranger";
  EXPECT_FALSE(hellos_.is_the_peer(answer_));
  peer_.name.clear();
  EXPECT_TRUE(hellos_.is_the_peer(answer_)) << "whoever listens there";
}

TEST_F(PathHellosTest, ThePeersRefusalIsTold) {
  answer_.status = Code::kBusy;
  answer_.reason = "full";
  const Status told = exchange();
  EXPECT_EQ(told.code(), Code::kBusy);
  EXPECT_EQ(told.message(), "peer turned us away: full");
}

TEST_F(PathHellosTest, AnAnswerForAnotherSessionIsCorrupt) {
  answer_.session = {6, 6};
  EXPECT_EQ(exchange().code(), Code::kCorrupt);
}

TEST_F(PathHellosTest, AnAnswerIsAwaitedUntilTheDeadline) {
  is_mute_ = true;
  EXPECT_TRUE(exchange(0, now_ + std::chrono::seconds(1)).ok());
  EXPECT_FALSE(hellos_.is_through(*shake_));
  const Status told = exchange(0, now_);
  EXPECT_EQ(told.code(), Code::kTimedOut);
  EXPECT_EQ(told.message(), "no answer from peer (memory)");
}

TEST_F(PathHellosTest, WhoDoesNotProveToBeThePeerIsDoubted) {
  context_.security = Security::kDefault;
  switch_.far_end = base::FarEnd::kElsewhere;
  answer_.security = level_of(Security::kDefault);
  terms_.known.secret = {4, 4};
  proves_nothing_ = true;
  const Status told = exchange();
  EXPECT_FALSE(told.ok());
  EXPECT_TRUE(hellos_.is_doubted());
  EXPECT_EQ(told.code(), Code::kDisconnected);
}

}  // namespace
}  // namespace hawser::backend::stream
