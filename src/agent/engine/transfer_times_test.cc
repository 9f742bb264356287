// What good transfers took.

#include "agent/engine/transfer_times.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

TEST(TransferTimes, OfSmallOnesThatAreOverAtOnceOneInEightIsTimed) {
  FlowCounters flow;
  int timed = 0;
  for (int i = 0; i < 16; ++i, ++flow.writes) timed += TransferTimes::is_timed_at_once(flow, 64) ? 1 : 0;
  EXPECT_EQ(timed, 2);
  flow.writes = 0;
  EXPECT_FALSE(TransferTimes::is_timed_at_once(flow, 64 * 1024));
  EXPECT_TRUE(TransferTimes::is_timed_at_once(flow, 64 * 1024 + 1));
}

TEST(TransferTimes, APathIsJudgedByThoseThatHadItAlone) {
  Rig rig;
  const std::shared_ptr<PeerCore> peer = hand_peer("there");
  rig.connect(peer);
  Session& session = *peer->session();
  PathEntry& entry = *session.control();
  const TransferTimes times(rig.engine.ports());
  const auto plan = rig.plan_of(peer);
  times.note(session, nullptr, plan->pieces, 5us, true);
  EXPECT_EQ(session.latency.count(), 1u);
  EXPECT_EQ(entry.times, nullptr);
  times.note(session, &entry, plan->pieces, 5us, false);
  EXPECT_EQ(session.latency.count(), 2u);
  ASSERT_NE(entry.times, nullptr);
  EXPECT_EQ(entry.times->latency.count(), 1u);
}

}  // namespace
}  // namespace hawser::agent
