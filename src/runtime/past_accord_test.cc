#include "runtime/past_accord.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "agent/peer_core.h"
#include "agent/session.h"
#include "base/bytes.h"
#include "base/inside.h"

namespace hawser::runtime {
namespace {

using agent::Sent;
using wire::AgreementPhase;

constexpr Instant kMoment = Instant::from_ns(1'000'000);
constexpr std::uint64_t kWorld = 5;

/// Keeps what is said to whom.
class KeepingCarrier final : public agent::Carrier {
 public:
  Sent carry(agent::Session& session, std::uint32_t, std::span<const std::byte> head,
             std::span<const std::byte> body) override {
    said.emplace_back(&session, std::string(base::as_text(head)) + std::string(base::as_text(body)));
    return Sent::kYes;
  }
  void release_message(agent::Session&, std::uint32_t, std::size_t) override {}
  void serve(agent::Session&, Instant) override {}
  agent::Session* session_with(const Peer& peer, Status*) override { return core_of(peer)->session.get(); }
  bool can_fetch(agent::Session&) const override { return false; }
  bool fetch(agent::Session&, std::uint64_t, std::span<std::byte>) override { return false; }
  Instant now() const override { return kMoment; }
  void note_deadline() override {}
  void note_end() override {}

  std::vector<std::pair<agent::Session*, std::string>> said;
};

/// Rank 2 of a world of 3.
class PastAccordTest : public testing::Test {
 protected:
  PastAccordTest() {
    for (std::uint64_t rank = 0; rank < 3; ++rank) {
      auto core = std::make_shared<agent::PeerCore>(std::weak_ptr<agent::Core>(), "rank", base::Id128{rank, 4});
      core->session = std::make_unique<agent::Session>(core, proto::NotifyLimits{}, inbox_, services_);
      cores_.push_back(core);
      ranks_.emplace_back(core);
    }
  }
  ~PastAccordTest() override {
    for (const auto& core : cores_) core->session.reset();  // A session and its peer own each other.
  }
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
  /// What rank 1 is told from now on.
  std::vector<wire::RuntimeMessage> told() {
    std::size_t work = 0;
    (void)mailbox_.pump(*cores_[1]->session, &work);
    std::vector<wire::RuntimeMessage> all;
    for (const auto& [session, bytes] : carrier_.said) {
      if (session == cores_[1]->session.get()) all.push_back(wire::decode_runtime(base::as_bytes(bytes)).value());
    }
    return all;
  }

  KeepingCarrier carrier_;
  agent::Inbox inbox_{16};
  Mailbox mailbox_{carrier_};
  std::array<agent::Service*, 1> services_{&mailbox_};
  std::vector<std::shared_ptr<agent::PeerCore>> cores_;
  std::vector<Peer> ranks_;
};

TEST_F(PastAccordTest, TheNextLeaderIsToldWhatTheDeadOneDecided) {
  const PastAccord past(kWorld, 2, ranks_, decided(), mailbox_);
  ASSERT_TRUE(told().empty());
  mailbox_.end(*cores_[0]->session, Status(Code::kDisconnected, "it died"));
  const std::vector<wire::RuntimeMessage> words = told();
  ASSERT_EQ(words.size(), 1U);
  EXPECT_EQ(words[0].kind, wire::RuntimeKind::kAgree);
  EXPECT_EQ(words[0].phase, AgreementPhase::kDecision);
  EXPECT_EQ(words[0].number, 1U);
}

TEST_F(PastAccordTest, ARankThatIsBehindIsAnswered) {
  PastAccord past(kWorld, 2, ranks_, decided(), mailbox_);
  past.on_agreement(ranks_[1], word(AgreementPhase::kVote));
  const std::vector<wire::RuntimeMessage> words = told();
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
