#include "agent/directory_finder.h"

#include <gtest/gtest.h>

#include "agent/directory_calls.h"
#include "agent/test_directory.h"
#include "agent/test_lane.h"
#include "wire/card.h"

namespace hawser::agent {
namespace {

using std::chrono::milliseconds;

class DirectoryFinderTest : public testing::Test, public CardIntake::Host {
 protected:
  void SetUp() override {
    peers_.open(std::make_shared<PeerCore>(std::weak_ptr<Core>(), "self", base::Id128{1, 1}));
    options_.directory = std::make_shared<TestDirectory>();
    options_.directory_prefix = "team/";
  }

  // As the agent.
  void on_card_loaded(PeerCore&, const CardStore::Change&) override {}
  void forget(const PeerCore& peer) override { peers_.forget(peer); }

  void put(const std::string& value) {
    Directory& directory = *options_.directory;
    (void)ask_alone(directory, directory.put("team/p", value, {}), lane_.clock, lane_.clock.now() + milliseconds(9));
  }
  void publish(std::uint64_t incarnation) {
    wire::Card card;
    card.name = "p";
    card.incarnation = {0, incarnation};
    card.revision = 1;
    put(wire::encode(card).value());
  }
  DirectoryFinder::Found look() { return finder_.look("p", lane_.clock.now() + milliseconds(50), &why_); }
  DirectoryFinder::Found find() { return finder_.find("p", lane_.clock.now() + milliseconds(50)); }

  TestLane lane_;
  AgentOptions options_;
  Life life_{"self"};
  PeerBook peers_{"self", 10};
  CardIntake intake_{lane_, peers_, *this};
  Status why_;
  DirectoryFinder finder_{
      {.lane = lane_, .clock = lane_.clock, .options = options_, .life = life_, .peers = peers_, .intake = intake_}};
};

TEST_F(DirectoryFinderTest, TakesInTheCardUnderThePrefix) {
  publish(7);
  const auto peer = *look();
  ASSERT_NE(peer, nullptr);
  EXPECT_EQ(peer, peers_.known({0, 7}));
}

TEST_F(DirectoryFinderTest, WaitsForACardThatComesLater) {
  lane_.meanwhile = [&] {
    if (lane_.waits == 25) publish(7);
  };
  const auto found = find();
  ASSERT_TRUE(found) << found.error().to_string();
  EXPECT_EQ((*found)->incarnation, (base::Id128{0, 7}));
}

TEST_F(DirectoryFinderTest, OneThatDoesNotComeIsNotFoundAtTheDeadline) {
  const Instant deadline = lane_.clock.now() + milliseconds(50);
  const Status missing = finder_.find("p", deadline).error();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_NE(missing.to_string().find("did not appear in the test directory"), std::string::npos) << missing.to_string();
  EXPECT_EQ(lane_.clock.now(), deadline);
}

TEST_F(DirectoryFinderTest, ACardOfTheDeadIsPassedOverUntilItIsWrittenAnew) {
  publish(7);
  const auto peer = *look();
  peers_.note_death(*peer, Status(Code::kDisconnected, "killed"));
  EXPECT_EQ(*look(), nullptr);
  EXPECT_NE(why_.to_string().find("which has died"), std::string::npos) << why_.to_string();
  publish(7);
  EXPECT_EQ(*look(), peer) << "it lives, since it writes";
}

TEST_F(DirectoryFinderTest, ACardOfOneThatIsDownIsPassedOver) {
  publish(7);
  (*look())->state = PeerState::kDown;
  EXPECT_EQ(*look(), nullptr);
  EXPECT_NE(why_.to_string().find("which is down"), std::string::npos) << why_.to_string();
  publish(8);
  EXPECT_EQ((*look())->incarnation, (base::Id128{0, 8})) << "its successor";
}

TEST_F(DirectoryFinderTest, WhatIsNoCardIsAnError) {
  put("no card");
  EXPECT_FALSE(look());
  EXPECT_FALSE(find());
}

TEST_F(DirectoryFinderTest, AnAgentThatClosesFindsNobody) {
  lane_.meanwhile = [&] { life_.begin_to_close(); };
  EXPECT_EQ(find().error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hawser::agent
