// Paths of a session are opened, and numbered.

#include "agent/engine/path_opener.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

TEST(PathOpener, APathIsTheSessionsLastAndHasASerialOfItsOwn) {
  Rig rig;
  PathIndex index;
  PathOpener opener(rig.engine.ports(), index, rig.engine.reach());
  const std::shared_ptr<PeerCore> peer = hand_peer("there");
  constexpr std::string_view kBoth[] = {"first", "second"};
  Rig::give_card(*peer, kBoth);
  Session& session = rig.session_with(peer);
  const base::Id128 lost{3, 4};
  ASSERT_TRUE(opener.open(session, 1, rig.now() + 1s, rig.now(), lost));
  const HandPort::Opened& opened = rig.second.port->opened.front();
  EXPECT_EQ(opened.peer, "there");
  EXPECT_EQ(opened.address, "there");
  EXPECT_EQ(opened.supersedes, lost);
  EXPECT_EQ(opened.deadline, rig.now() + 1s);
  EXPECT_EQ(session.paths.back().supersedes, lost);
  EXPECT_EQ(index.find(session.paths.back().path), &session);
  HandPath inbound;
  const std::uint64_t first_serial = session.paths.back().serial;
  EXPECT_NE(opener.enter(session, 0, &inbound).serial, first_serial);
  session.paths.clear();
}

TEST(PathOpener, WhyItCouldNotIsKept) {
  Rig rig;
  PathIndex index;
  PathOpener opener(rig.engine.ports(), index, rig.engine.reach());
  Session& session = rig.session_with(hand_peer("there"));
  rig.first.port->open_answer = Status(Code::kBusy, "too many");
  session.refused.insert(0);
  EXPECT_FALSE(opener.open(session, 0, Instant::max(), rig.now(), {}));
  EXPECT_EQ(session.failed.at(0).code(), Code::kBusy);
  EXPECT_FALSE(session.refused.contains(0));
  EXPECT_TRUE(session.paths.empty());
}

}  // namespace
}  // namespace hawser::agent
