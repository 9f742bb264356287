// Which backends lead to a peer.

#include "agent/engine/reach.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class ReachTest : public ::testing::Test {
 protected:
  Rig rig_{{.self_only = true}};
  const Reach& reach_ = rig_.engine.reach();
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
};

TEST_F(ReachTest, ThoseWhoseAddressIsInItsCardAndCanBeReached) {
  EXPECT_TRUE(reach_.candidates(*peer_).empty());
  constexpr std::string_view kBoth[] = {"first", "second"};
  Rig::give_card(*peer_, kBoth);
  EXPECT_EQ(reach_.address_of(*peer_, 1), "there");
  std::vector<Status> why;
  EXPECT_EQ(reach_.candidates(*peer_, &why), std::vector<std::size_t>{1}) << "the first is for the agent itself";
  EXPECT_EQ(why[0].code(), Code::kUnsupported);
  EXPECT_TRUE(why[1].ok());
  rig_.second.backend->unreachable = Status(Code::kUnsupported, "another host");
  EXPECT_TRUE(reach_.candidates(*peer_).empty());
}

TEST_F(ReachTest, TheAgentItselfIsReachedWithoutACard) {
  EXPECT_EQ(reach_.candidates(*rig_.self), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(reach_.address_of(*rig_.self, 0), "somewhere");
}

TEST_F(ReachTest, AttemptsTellWhyThereIsNoPath) {
  constexpr std::string_view kSecond[] = {"second"};
  Rig::give_card(*peer_, kSecond);
  Session& session = rig_.session_with(peer_);
  session.failed[1] = Status(Code::kDisconnected, "refused");
  session.refused.insert(1);
  const std::vector<Attempt> attempts = reach_.attempts_of(session);
  ASSERT_EQ(attempts.size(), 2u);
  EXPECT_TRUE(attempts[0].leads_nowhere);
  EXPECT_FALSE(attempts[1].leads_nowhere);
  EXPECT_TRUE(attempts[1].refused);
  EXPECT_EQ(attempts[1].backend, "second");
}

// Where nothing else leads there, this is what to mend.
TEST_F(ReachTest, ThoseLeftOutWhenTheAgentOpenedAreNamedWhereThePeerHasThem) {
  constexpr std::string_view kThere[] = {"shm"};
  Rig::give_card(*peer_, kThere);
  const Status limit = Status(Code::kDenied, "RLIMIT_FSIZE = 1024").with_advice("raise `ulimit -f`");
  rig_.reports.add({.name = "shm", .open = false, .cause = limit, .params = {}, .warnings = {}, .address = {}});
  rig_.reports.add({.name = "verbs", .open = false, .cause = limit, .params = {}, .warnings = {}, .address = {}});
  rig_.reports.add({.name = "second", .open = true, .cause = {}, .params = {}, .warnings = {}, .address = {}});
  const std::vector<Attempt> attempts = reach_.attempts_of(rig_.session_with(peer_));
  ASSERT_EQ(attempts.size(), 3u);
  EXPECT_EQ(attempts[2].backend, "shm");
  EXPECT_TRUE(attempts[2].leads_nowhere);
  const Status verdict = judge_attempts("there", attempts).cause;
  EXPECT_NE(verdict.to_string().find("shm: it is not open here"), std::string::npos) << verdict.to_string();
  EXPECT_NE(verdict.to_string().find("RLIMIT_FSIZE = 1024"), std::string::npos) << verdict.to_string();
  EXPECT_NE(verdict.advice().find("shm: raise `ulimit -f`"), std::string::npos) << verdict.advice();
}

}  // namespace
}  // namespace hawser::agent
