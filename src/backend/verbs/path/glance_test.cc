// Port::has_news: a glance before a turn. In virtual time.

#include "backend/verbs/port_test_pair.h"

namespace hawser::backend::verbs {
namespace {

class Glance : public VerbsPair {
 protected:
  void SetUp() override {
    start();
    connect();
    run([] { return false; }, 1000);  // All that both ends had to say is said.
    a->collect(now);
  }
};

TEST_F(Glance, FindsACompletionAndTheNextPollTellsOfIt) {
  fabric.hold = true;
  const Piece piece[] = {{a->memory.data(), 0, 4096}};
  ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u);
  a->collect(now);
  EXPECT_FALSE(a->port->has_news(now));
  fabric.hold = false;
  fabric.deliver();
  EXPECT_TRUE(a->port->has_news(now));
  a->collect(now);
  EXPECT_TRUE(is_done(1));
  EXPECT_FALSE(a->port->has_news(now));
}

TEST_F(Glance, LeavesTheControlStreamToTheClock) {
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE(a->port->has_news(now)) << i;
  EXPECT_TRUE(a->port->has_news(now + std::chrono::milliseconds(1)));
}

}  // namespace
}  // namespace hawser::backend::verbs
