#include "sim/user.h"

#include "sim/test_users.h"

namespace hawser::simulation {
namespace {

using UserTest = TwoUsersTest;

TEST_F(UserTest, AllKindsTogetherEndWell) {
  User user(theater);
  for (int i = 0; i < 100; ++i) {
    user.act(a);
    user.act(b);
    run(2);
  }
  run(500);
  user.read(a);
  user.read(b);
  EXPECT_GT(judge.transfers().good(), 0u);
  EXPECT_GT(judge.atomics().good(), 0u);
}

}  // namespace
}  // namespace hawser::simulation
