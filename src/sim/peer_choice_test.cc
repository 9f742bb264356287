#include "sim/peer_choice.h"

#include "sim/test_users.h"

namespace hawser::simulation {
namespace {

using PeerChoiceTest = TwoUsersTest;

TEST_F(PeerChoiceTest, IsNeverTheLifeItself) {
  PeerChoice peers(theater, rng);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(peers.pick(a), &b);
    EXPECT_EQ(peers.pick(b), &a);
  }
}

TEST(PeerChoice, IntroducesWhomTheLifeDoesNotKnow) {
  sim::Universe universe{{.seed = 7, .trace = {}}};
  Judge judge(universe);
  Theater theater(universe, judge, Settings{.nodes = 2});
  base::Rng rng(5);
  EXPECT_FALSE(theater.at(0).bonds[&theater.at(1)].known);
  EXPECT_EQ(PeerChoice(theater, rng).pick(theater.at(0)), &theater.at(1));
  EXPECT_TRUE(theater.at(0).bonds[&theater.at(1)].known);
}

}  // namespace
}  // namespace hawser::simulation
