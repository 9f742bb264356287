// How sessions go.

#include "agent/engine/graveyard.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class GraveyardTest : public ::testing::Test {
 protected:
  Rig rig_;
  Graveyard& graveyard_ = rig_.engine.graveyard();
};

TEST_F(GraveyardTest, ASessionThatIsOverIsDestroyedAndItsPeerForgotten) {
  const std::shared_ptr<PeerCore> peer = hand_peer("there");
  rig_.engine.sessions().retire(rig_.session_with(peer));
  graveyard_.bury();
  EXPECT_EQ(peer->session(), nullptr);
  EXPECT_EQ(rig_.host.forgotten, std::vector<std::string>{"there"});
  EXPECT_EQ(rig_.host.kept, 1) << "what went over it stays in the totals";
}

TEST_F(GraveyardTest, AnAgentIsNeverGoneForItself) {
  rig_.self->state = PeerState::kDown;
  rig_.session_with(rig_.self);
  graveyard_.bury();
  EXPECT_EQ(rig_.self->session(), nullptr);
  EXPECT_EQ(rig_.self->state, PeerState::kKnown);
  EXPECT_TRUE(rig_.host.forgotten.empty());
}

TEST_F(GraveyardTest, AllGoWithTheAgent) {
  const std::shared_ptr<PeerCore> one = hand_peer("one", 1), two = hand_peer("two", 2);
  rig_.session_with(one);
  rig_.session_with(two);
  graveyard_.bury_all();
  EXPECT_EQ(one->session(), nullptr);
  EXPECT_EQ(two->session(), nullptr);
  EXPECT_EQ(rig_.host.kept, 2);
}

}  // namespace
}  // namespace hawser::agent
