// Whose a path is.

#include "agent/engine/path_index.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

TEST(PathIndex, APathIsItsSessionsUntilItIsForgotten) {
  Rig rig;
  Session& session = rig.session_with(hand_peer("there"));
  HandPath path, other;
  PathIndex index;
  EXPECT_EQ(index.find(&path), nullptr);
  index.add(&path, session);  // Though it was asked for just before.
  EXPECT_EQ(index.find(&path), &session);
  EXPECT_EQ(index.find(&path), &session);
  EXPECT_EQ(index.find(&other), nullptr);
  index.forget(&path);
  EXPECT_EQ(index.find(&path), nullptr);
  index.add(&path, session);
  index.clear();
  EXPECT_EQ(index.find(&path), nullptr);
}

}  // namespace
}  // namespace hawser::agent
