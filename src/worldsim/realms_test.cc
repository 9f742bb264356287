#include "worldsim/realms.h"

#include <gtest/gtest.h>

namespace hawser::worldsim {
namespace {

TEST(Realms, AllRanksThatDeriveTheSameGetTheSame) {
  sim::Universe universe{{.seed = 7, .trace = {}}};
  Realms realms(universe);
  Realm& whole = realms.open({0, 1, 2}, 5);
  const auto nobody = [](std::size_t) { return false; };
  Realm& shrunk = realms.derive(whole, false, {0, 2}, nobody);
  EXPECT_EQ(&realms.derive(whole, false, {0, 2}, nobody), &shrunk);
  EXPECT_NE(&realms.derive(whole, true, {0, 2}, nobody), &shrunk) << "a group is another one";
  EXPECT_EQ(shrunk.epoch, whole.epoch + 1);
  EXPECT_EQ(shrunk.parts.size(), 2u);
  EXPECT_EQ(realms.all().size(), 3u);
}

TEST(Realms, OneWithARankThatIsGoneIsDoomedFromItsBegin) {
  sim::Universe universe{{.seed = 7, .trace = {}}};
  Realms realms(universe);
  Realm& whole = realms.open({0, 1, 2}, 5);
  EXPECT_FALSE(whole.doomed);
  const Realm& shrunk = realms.derive(whole, false, {0, 2}, [](std::size_t actor) { return actor == 2; });
  EXPECT_TRUE(shrunk.doomed && shrunk.bereft);
  universe.world.run_for(std::chrono::milliseconds(5));
  realms.doom(whole);
  const Instant when = whole.doomed.value();
  universe.world.run_for(std::chrono::milliseconds(5));
  realms.doom(whole);
  EXPECT_EQ(whole.doomed.value(), when) << "the first time counts";
}

}  // namespace
}  // namespace hawser::worldsim
