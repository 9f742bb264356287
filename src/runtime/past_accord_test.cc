#include "runtime/past_accord.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "runtime/test_ranks.h"

namespace hawser::runtime {
namespace {

using wire::AgreementPhase;

constexpr std::uint64_t kWorld = 5;

/// Rank 2 of a world of 3.
class PastAccordTest : public TestRanks {
 protected:
  static wire::RuntimeMessage word(AgreementPhase phase) {
    static const std::string none(2, '\0');
    return {.kind = wire::RuntimeKind::kAgree,
            .world = kWorld,
            .number = 1,
            .last_good = 0,
            .phase = phase,
            .calls = kCallsAgree,
            .flag = true,
            .body = base::as_bytes(none)};
  }
  /// Rank 0 leads to a decision, which this rank hears of.
  std::shared_ptr<Accord> decided() {
    auto accord = std::make_shared<Accord>(kWorld, "world", 2, ranks_, mailbox_);
    auto call = std::make_shared<Agreeing>();
    call->value = {.calls = kCallsAgree, .flag = true};
    accord->begin(call, std::chrono::seconds(1), kMoment);
    accord->hear(0, word(AgreementPhase::kProposal), kMoment);
    accord->hear(0, word(AgreementPhase::kDecision), kMoment);
    EXPECT_TRUE(call->final);
    EXPECT_TRUE(accord->has_decided());
    accord->close(Status(Code::kCancelled, "closed"));
    return accord;
  }
};

TEST_F(PastAccordTest, TheNextLeaderIsToldWhatTheDeadOneDecided) {
  const PastAccord past(kWorld, 2, ranks_, decided(), mailbox_);
  ASSERT_TRUE(told(1).empty());
  mailbox_.end(*cores_[0]->session(), Status(Code::kDisconnected, "it died"));
  const std::vector<wire::RuntimeMessage> words = told(1);
  ASSERT_EQ(words.size(), 1U);
  EXPECT_EQ(words[0].kind, wire::RuntimeKind::kAgree);
  EXPECT_EQ(words[0].phase, AgreementPhase::kDecision);
  EXPECT_EQ(words[0].number, 1U);
}

TEST_F(PastAccordTest, ARankThatIsBehindIsAnswered) {
  PastAccord past(kWorld, 2, ranks_, decided(), mailbox_);
  past.on_agreement(ranks_[1], word(AgreementPhase::kVote));
  const std::vector<wire::RuntimeMessage> words = told(1);
  ASSERT_EQ(words.size(), 1U);
  EXPECT_EQ(words[0].phase, AgreementPhase::kDecision);
}

TEST_F(PastAccordTest, ACallOfAClosedWorldIsRefused) {
  const std::shared_ptr<Accord> accord = decided();
  auto call = std::make_shared<Agreeing>();
  accord->begin(call, std::chrono::seconds(1), kMoment);
  EXPECT_TRUE(call->final);
  EXPECT_EQ(call->status.code(), Code::kCancelled);
}

}  // namespace
}  // namespace hawser::runtime
