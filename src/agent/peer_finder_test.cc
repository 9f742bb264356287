#include "agent/peer_finder.h"

#include <gtest/gtest.h>

#include <array>

#include "agent/directory_calls.h"
#include "agent/test_directory.h"
#include "agent/test_lane.h"
#include "wire/card.h"

namespace hawser::agent {
namespace {

using std::chrono::milliseconds;

/// Nobody listens anywhere.
class NoStrangers final : public AddressFinder::Strangers {
 public:
  Result<std::string> resolve(std::string_view address, Instant) override {
    asked_for = address;
    return Status(Code::kFailed, "nobody listens there");
  }
  Result<std::uint64_t> open(std::string_view, std::string_view, const AdmissionTicket&, Instant) override { return 1; }
  AddressFinder::Found take(std::uint64_t) override { return std::shared_ptr<PeerCore>(); }
  void drop(std::uint64_t) override {}
  void want_card(const std::shared_ptr<PeerCore>&) override {}
  std::uint64_t open_better_path(const std::shared_ptr<PeerCore>&, Instant) override { return 0; }
  bool is_opening(const std::shared_ptr<PeerCore>&, std::uint64_t) override { return false; }

  std::string asked_for;
};

class PeerFinderTest : public testing::Test, public CardIntake::Host, public PeerFinder::Host {
 protected:
  void SetUp() override { peers_.open(std::make_shared<PeerCore>(std::weak_ptr<Core>(), "self", base::Id128{1, 1})); }
  void open_directory() { options_.directory = std::make_shared<TestDirectory>(); }

  // As the agent.
  void on_card_loaded(PeerCore&, const CardStore::Change&) override {}
  void forget(const PeerCore& peer) override { peers_.forget(peer); }
  void want(const std::shared_ptr<PeerCore>&) override { ++wanted_; }
  void check_card(const std::shared_ptr<PeerCore>&) override { ++checked_; }

  static wire::Card make_card(std::uint64_t incarnation, std::uint64_t revision, std::string_view region = "") {
    wire::Card card;
    card.name = "p";
    card.incarnation = {0, incarnation};
    card.born = incarnation;
    card.revision = revision;
    if (!region.empty()) {
      wire::CardRegion one;
      one.generation = 1;
      one.size = 64;
      one.key = {1, 2};
      one.name = region;
      one.rights = Rights::kReadWrite;
      card.regions.push_back(one);
    }
    return card;
  }
  std::shared_ptr<PeerCore> know(wire::Card card) { return *intake_.take(std::move(card)); }
  void publish(const wire::Card& card) {
    Directory& directory = *options_.directory;
    const Ticket ticket = directory.put(options_.directory_prefix + "p", wire::encode(card).value(), {});
    (void)ask_alone(directory, ticket, lane_.clock, lane_.clock.now() + milliseconds(9));
  }
  PeerFinder::Found find(PeerFinder::Names regions = {}, std::string_view name = "p") {
    return finder_.find(name, regions, lane_.clock.now() + milliseconds(100));
  }

  TestLane lane_;
  AgentOptions options_;
  std::string name_ = "self";
  Life life_{name_};
  PeerBook peers_{name_, 10};
  NoStrangers strangers_;
  CardIntake intake_{lane_, peers_, *this};
  DirectoryFinder directory_{
      {.lane = lane_, .clock = lane_.clock, .options = options_, .life = life_, .peers = peers_, .intake = intake_}};
  AddressFinder addresses_{lane_, lane_.clock, strangers_};
  int wanted_ = 0, checked_ = 0;
  PeerFinder finder_{{.lane = lane_,
                      .clock = lane_.clock,
                      .agent = name_,
                      .life = life_,
                      .peers = peers_,
                      .directory = directory_,
                      .addresses = addresses_,
                      .host = *this}};
  const std::array<std::string_view, 1> kv_{"kv"};
};

TEST_F(PeerFinderTest, WithoutADirectoryAKnownCardIsEnough) {
  const auto peer = know(make_card(7, 1));
  EXPECT_EQ(*find(), peer);
  peer->state = PeerState::kDown;
  const Status missing = find().error();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_NE(missing.to_string().find("agent 'self' has no directory"), std::string::npos) << missing.to_string();
  EXPECT_EQ(find({}, "").error().code(), Code::kInvalid);
}

TEST_F(PeerFinderTest, OfTwoIncarnationsThatWhichLivesIsFound) {
  const auto first = know(make_card(7, 1)), second = know(make_card(8, 1));
  EXPECT_EQ(*find(), second) << "born later";
  first->state = PeerState::kUp;
  EXPECT_EQ(*find(), first) << "there is a session with it";
}

TEST_F(PeerFinderTest, TheDirectoryKnowsBetterThanACardWithoutASession) {
  open_directory();
  const auto first = know(make_card(7, 1));
  publish(make_card(8, 1));
  first->state = PeerState::kUp;
  EXPECT_EQ(*find(), first);
  first->state = PeerState::kKnown;
  EXPECT_EQ((*find())->incarnation, (base::Id128{0, 8}));
}

TEST_F(PeerFinderTest, AnOldCardInTheDirectoryIsNotBelieved) {
  open_directory();
  const auto later = know(make_card(8, 1));
  publish(make_card(7, 1));
  EXPECT_EQ(*find(), later);
}

TEST_F(PeerFinderTest, ANameWithAnAddressIsConnectedToUnlessAPeerIsCalledSo) {
  EXPECT_EQ(find({}, "p@host:1").error().code(), Code::kFailed);
  EXPECT_EQ(strangers_.asked_for, "host:1");
  wire::Card odd = make_card(7, 1);
  odd.name = "p@host:2";
  const auto peer = know(std::move(odd));
  EXPECT_EQ(*find({}, "p@host:2"), peer);
  EXPECT_EQ(strangers_.asked_for, "host:1");
}

TEST_F(PeerFinderTest, WaitsForRegionsAndOpensASessionThatTellsOfThem) {
  const auto peer = know(make_card(7, 1));
  lane_.meanwhile = [&] {
    if (lane_.waits == 25) know(make_card(7, 2, "kv"));
  };
  EXPECT_EQ(*find(kv_), peer);
  EXPECT_GT(wanted_, 0);
  EXPECT_LT(lane_.waits, 30);
}

// The peer closed the region and has another one of that name: the caller heard of it before the card came.
TEST_F(PeerFinderTest, WhatIsKnownOfAPeerInSessionIsCheckedOnce) {
  const auto peer = know(make_card(7, 2, "kv"));
  EXPECT_TRUE(finder_.await_regions(peer, kv_, lane_.clock.now() + milliseconds(100)).ok());
  EXPECT_EQ(checked_, 0) << "there is no session that could ask";
  peer->state = PeerState::kUp;
  lane_.meanwhile = [&] {
    if (lane_.waits != 3) return;
    know(make_card(7, 3));
    peer->use().card_checks.fetch_add(1);
  };
  EXPECT_EQ(finder_.await_regions(peer, kv_, lane_.clock.now() + milliseconds(100)).code(), Code::kNotFound);
  EXPECT_EQ(checked_, 1);
  EXPECT_TRUE(finder_.await_regions(know(make_card(7, 4, "kv")), kv_, lane_.clock.now()).ok()) << "no time to ask";
  EXPECT_EQ(checked_, 1);
}

TEST_F(PeerFinderTest, APeerThatDoesNotAnswerIsTakenAtItsWord) {
  const auto peer = know(make_card(7, 2, "kv"));
  peer->state = PeerState::kUp;
  const Instant begin = lane_.clock.now();
  EXPECT_TRUE(finder_.await_regions(peer, kv_, begin + std::chrono::seconds(5)).ok());
  EXPECT_LT(lane_.clock.now() - begin, std::chrono::seconds(1));
}

TEST_F(PeerFinderTest, RegionsThatDoNotComeAreNamed) {
  const auto peer = know(make_card(7, 1, "other"));
  const Status missing = find(kv_).error();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_NE(missing.to_string().find("no region 'kv' yet"), std::string::npos) << missing.to_string();
  EXPECT_NE(missing.to_string().find("it has: other"), std::string::npos) << missing.to_string();
}

TEST_F(PeerFinderTest, WithoutASessionTheDirectoryTellsOfRegions) {
  open_directory();
  publish(make_card(7, 1));
  lane_.meanwhile = [&] {
    if (lane_.waits == 25) publish(make_card(7, 2, "kv"));
  };
  ASSERT_TRUE(find(kv_));
  EXPECT_EQ(wanted_, 0);
}

TEST_F(PeerFinderTest, ASuccessorEndsTheWaitForRegionsAndIsFoundInstead) {
  open_directory();
  const auto first = know(make_card(7, 1));
  publish(make_card(8, 1, "kv"));
  const Status gone = finder_.await_regions(first, kv_, lane_.clock.now() + milliseconds(50));
  EXPECT_EQ(gone.code(), Code::kDisconnected);
  EXPECT_NE(gone.to_string().find("successor"), std::string::npos) << gone.to_string();
  EXPECT_EQ((*find(kv_))->incarnation, (base::Id128{0, 8}));
}

TEST_F(PeerFinderTest, OneThatGoesDownEndsTheWaitForRegions) {
  const auto peer = know(make_card(7, 1));
  lane_.meanwhile = [&] { peer->state = PeerState::kDown; };
  EXPECT_EQ(finder_.await_regions(peer, kv_, lane_.clock.now() + milliseconds(50)).code(), Code::kDisconnected);
}

TEST_F(PeerFinderTest, AnAgentThatClosesFindsNobody) {
  const auto peer = know(make_card(7, 1));
  lane_.meanwhile = [&] { life_.begin_to_close(); };
  EXPECT_EQ(finder_.await_regions(peer, kv_, lane_.clock.now() + milliseconds(50)).code(), Code::kInvalid);
  EXPECT_EQ(find().error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hawser::agent
