// Transfers that are over before submit returns. Without agents: src/agent/at_once_test.cc has whole ones.

#include "agent/engine/at_once.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class AtOnceTest : public ::testing::Test {
 protected:
  AtOnceTest() {
    Status why;
    EXPECT_NE(rig_.engine.router().route(*plan_, *peer_->session(), &why), nullptr);
    path_.moves_at_once = true;
    path_.sent.clear();
  }
  bool move(const std::optional<std::string_view>& notify = {}) { return rig_.engine.at_once().move(*plan_, notify); }
  Session& session() { return *peer_->session(); }

  Rig rig_{{.lossless = true}};
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
  HandPath& path_ = rig_.connect(peer_);
  const std::shared_ptr<PlanCore> plan_ = rig_.plan_of(peer_);
};

TEST_F(AtOnceTest, ItsOneChunkIsMovedAndCounted) {
  ASSERT_TRUE(move());
  EXPECT_EQ(path_.moved.size(), 1u);
  EXPECT_EQ(session().flow.writes, 1u);
  EXPECT_EQ(session().flow.bytes_written, 8u);
  EXPECT_TRUE(path_.sent.empty());
}

TEST_F(AtOnceTest, ItsNotificationGoesAfterTheBytes) {
  ASSERT_TRUE(move("written"));
  EXPECT_EQ(path_.moved.size(), 1u);
  EXPECT_EQ(path_.kinds_sent(), std::vector{wire::SessionKind::kArrive});
  EXPECT_EQ(session().flow.notifications_sent, 1u);
}

TEST_F(AtOnceTest, NotWhereAnythingWaitsBeforeIt) {
  Slot& waiting = rig_.slot_of(rig_.plan_of(peer_));
  session().pending[0].push_back(waiting);
  EXPECT_FALSE(move());
  waiting.pending_hook.unlink();
  session().lost.emplace_back();
  EXPECT_FALSE(move());
  session().lost.clear();
  rig_.engine.sessions().begin_close();
  EXPECT_FALSE(move());
  EXPECT_TRUE(path_.moved.empty());
}

TEST_F(AtOnceTest, WithoutRoomForTheNotificationItsPlaceIsGivenBack) {
  path_.message_room = 0;
  for (int i = 0; i < 100'000; ++i) ASSERT_FALSE(move("written"));  // More than there are places.
  EXPECT_EQ(session().flow.notifications_sent, 0u);
  path_.message_room = 1;
  EXPECT_TRUE(move("written"));
}

TEST_F(AtOnceTest, NotBeforeAPathWasChosen) {
  plan_->route = Route();
  EXPECT_FALSE(move());
}

}  // namespace
}  // namespace hawser::agent
