// Reconnecting at a user's word, by either end of a path.

#include "backend/verbs/port_test_pair.h"

namespace hawser::backend::verbs {
namespace {

class Reconnect : public VerbsPair {
 protected:
  /// A link that is there again while the next attempt is far off: an end's `reconnect` has it made at once.
  void reconnect_at(bool at_opener) {
    start();
    connect();
    options.patience = std::chrono::hours(1);
    const auto epoch = [this] { return to_b->counters().queue_pairs.at(0).epoch; };
    const auto state = [this] { return to_b->counters().queue_pairs.at(0).state; };
    to_b->reconnect(now);
    EXPECT_EQ(epoch(), 1u) << "what works stays";
    fabric.set_link("mock1", false);
    const Piece piece[] = {{a->memory.data(), 0, 4096}};
    ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u);
    fabric.expire();
    // Attempts fail until a pause is long.
    ASSERT_TRUE(run([&] {
      fabric.expire();
      return state() == "backoff";
    }));
    const std::uint32_t before = epoch();
    fabric.set_link("mock1", true);
    run([] { return false; }, 100);  // 1 ms: shorter than any pause.
    ASSERT_EQ(state(), "backoff");
    Path* const asked = at_opener ? to_b : b->up;
    asked->reconnect(now);
    ASSERT_TRUE(run([&] { return epoch() == before + 1; }, at_opener ? 0 : 20)) << state();
    ASSERT_TRUE(run([&] { return is_done(1); }, 200)) << to_b->describe();
    EXPECT_TRUE(outcome(1).ok()) << outcome(1).to_string();
    EXPECT_TRUE(a->down.empty());
  }
};

TEST_F(Reconnect, DoesNotWaitForThePause) { reconnect_at(true); }
TEST_F(Reconnect, AtTheEndThatDidNotOpenThePathDoesNotWaitEither) { reconnect_at(false); }

TEST_F(Reconnect, AtEitherEndBreaksNothingThatWorks) {
  start();
  connect();
  for (int i = 0; i < 10'000; ++i) {  // More than the control stream takes without the peer.
    to_b->reconnect(now);
    b->up->reconnect(now);
    if (i % 1000 == 0) step();
  }
  const Piece piece[] = {{a->memory.data(), 0, 4096}};
  ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u);
  ASSERT_TRUE(run([&] { return is_done(1); }));
  EXPECT_TRUE(outcome(1).ok()) << outcome(1).to_string();
  EXPECT_EQ(to_b->counters().queue_pairs.at(0).epoch, 1u);
  EXPECT_TRUE(a->down.empty() && b->down.empty());
}

// It costs both ends a queue pair each time, and its program may ask whenever it sees a failure.
TEST_F(Reconnect, AnEndThatAsksAtEveryFailureDoesNotTakeThePausesAway) {
  options.patience = std::chrono::hours(1);
  start();
  connect();
  fabric.set_link("mock1", false);
  const Piece piece[] = {{a->memory.data(), 0, 4096}};
  ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u);
  std::uint32_t first = 0;
  const Instant begin = now;
  for (int asked = 0; asked < 400; ++asked) {
    fabric.expire();
    run([] { return false; }, 1000);  // 10 ms.
    b->up->reconnect(now);
    if (asked == 199) first = to_b->counters().queue_pairs.at(0).epoch;
  }
  const double seconds = std::chrono::duration<double>(now - begin).count() / 2;
  const std::uint32_t more = to_b->counters().queue_pairs.at(0).epoch - first;
  EXPECT_GT(more, 0u);
  EXPECT_LE(more, 3 * seconds + 1) << "after long pauses two in a second, and one that was asked for";
}

}  // namespace
}  // namespace hawser::backend::verbs
