#include "sim/message_user.h"

#include "sim/test_users.h"

namespace hawser::simulation {
namespace {

using MessageUserTest = TwoUsersTest;

TEST_F(MessageUserTest, MessagesAndNotesComeInOrder) {
  MessageUser user(theater, rng);
  for (int i = 0; i < 10; ++i) {
    user.send(a);
    user.note(a);
    run(20, false);
    user.read(b);
    user.read(a);
  }
  EXPECT_GT(b.messages_taken, 0u);
  const Bond& bond = a.bonds[&b];
  EXPECT_FALSE(bond.notes_received.empty());
  EXPECT_EQ(bond.notes_received, bond.notes_sent);
}

}  // namespace
}  // namespace hawser::simulation
