// Agreement by itself: ranks as objects, messages in queues, failures at any moment.

#include "runtime/agreement.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/agreement_simulation.h"

namespace hawser::runtime {
namespace {

using wire::AgreementPhase;

TEST(Agreement, AllLearnTheAndOfTheFlags) {
  for (const bool other : {true, false}) {
    AgreementSimulation ranks(4, 1);
    for (std::uint32_t rank = 0; rank < 4; ++rank) ranks.vote(rank, rank == 2 ? other : true);
    ranks.deliver_all();
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      const AgreementValue* const decision = ranks.of(rank).decision(1);
      ASSERT_NE(decision, nullptr);
      EXPECT_EQ(decision->flag, other);
      EXPECT_EQ(decision->failed, std::vector<bool>(4));
      EXPECT_EQ(decision->last_good, 10U);  // Rank 0's; rank r voted 10 + r.
    }
  }
}

TEST(Agreement, OneRankAgreesWithItself) {
  AgreementSimulation ranks(1, 1);
  ranks.vote(0, false);
  ASSERT_NE(ranks.of(0).decision(1), nullptr);
  EXPECT_FALSE(ranks.of(0).decision(1)->flag);
}

TEST(Agreement, TellsForWhomItWaits) {
  AgreementSimulation ranks(4, 1);
  ranks.vote(0, true);
  ranks.vote(1, true);
  ranks.deliver_all();
  EXPECT_EQ(ranks.of(0).absent(), (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(ranks.of(1).absent(), (std::vector<std::uint32_t>{0}));  // All it knows.
  ranks.of(1).ask_for_absent();
  ranks.deliver_all();
  EXPECT_EQ(ranks.of(1).absent(), (std::vector<std::uint32_t>{2, 3}));
  // A leader that has not called is absent itself.
  AgreementSimulation others(3, 1);
  others.vote(1, true);
  others.of(1).ask_for_absent();
  others.deliver_all();
  EXPECT_EQ(others.of(1).absent(), (std::vector<std::uint32_t>{0, 2}));
}

TEST(Agreement, CallsThatDifferShow) {
  AgreementSimulation ranks(2, 1);
  ranks.of(0).vote({.calls = kCallsAgree});
  ranks.of(1).vote({.calls = kCallsShrink});
  ranks.deliver_all();
  EXPECT_EQ(ranks.of(1).decision(1)->calls, kCallsAgree | kCallsShrink);
}

TEST(Agreement, ProofOfADeathThatComesAfterTheVotesCounts) {
  AgreementSimulation ranks(5, 1);
  ranks.vote(2, true);
  ranks.deliver_all();
  for (const std::uint32_t rank : {2U, 3U, 4U}) {  // The leader and its successor die; the vote goes to the next one.
    for (const std::uint32_t dead : {0U, 1U}) {
      ranks.of(rank).note_dead(dead);
      ranks.of(rank).note_failed(dead);
    }
  }
  ranks.of(3).note_dead(1);
  ranks.vote(3, true);
  ranks.vote(4, true);
  ranks.deliver_all();
  for (const std::uint32_t rank : {2U, 3U, 4U}) {
    ASSERT_NE(ranks.of(rank).decision(1), nullptr);
    EXPECT_EQ(ranks.of(rank).decision(1)->dead, (std::vector<bool>{true, true, false, false, false}));
  }
}

TEST(Agreement, NonsenseIsPassedOver) {
  AgreementSimulation ranks(3, 1);
  Agreement& leader = ranks.of(0);
  leader.vote({.calls = kCallsAgree});
  const AgreementValue good = {.calls = kCallsAgree, .failed = std::vector<bool>(3)};
  const AgreementValue short_one = {.calls = kCallsAgree, .failed = std::vector<bool>(2)};
  leader.hear(1, {.number = 1, .phase = AgreementPhase::kVote, .value = short_one});
  leader.hear(3, {.number = 1, .phase = AgreementPhase::kVote, .value = good});
  leader.hear(0, {.number = 1, .phase = AgreementPhase::kVote, .value = good});
  leader.hear(1, {.number = 3, .phase = AgreementPhase::kVote, .value = good});
  leader.hear(1, {.number = 1, .phase = AgreementPhase::kAccept, .value = good});
  leader.hear(1, {.number = 1, .phase = AgreementPhase::kProposal, .value = good});
  EXPECT_EQ(leader.absent(), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(leader.decision(1), nullptr);
}

TEST(Agreement, AProposalThatNoMajorityHasAcceptedIsNotDecided) {
  for (const LonelyLeader& leader : kLonelyLeaders) EXPECT_EQ(run_lonely_leader(leader), "");
}

TEST(Agreement, ADecisionStandsThatTheNextLeaderHasNotHeardOf) { EXPECT_EQ(run_lost_acceptance(), ""); }

TEST(Agreement, HoldsWhicheverRanksFailAndWhenever) {
  for (std::uint64_t seed = 1; seed <= 5'000; ++seed) ASSERT_EQ(run_agreement_seed(seed), "") << "seed " << seed;
}

}  // namespace
}  // namespace hawser::runtime
