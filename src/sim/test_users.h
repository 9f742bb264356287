#pragma once

// What tests of users share: two agents that know each other, over streams without faults, and their judge.
//
// Thread rule: one thread.

#include <gtest/gtest.h>

#include <chrono>

#include "sim/message_user.h"
#include "sim/theater.h"

namespace hawser::simulation {

struct TwoUsers {
  TwoUsers() {
    theater.introduce(a, b);
    theater.introduce(b, a);
    run();
  }
  /// Time goes on, with the regular work of every life. Unless `reads` is false, both take what comes.
  void run(int milliseconds = 20, bool reads = true) {
    for (int i = 0; i < milliseconds; ++i) {
      for (const auto& life : theater.lives()) life->host->wake();
      universe.world.run_for(std::chrono::milliseconds(1));
      theater.tick();
      for (const auto& life : theater.lives()) {
        if (!life->alive) continue;
        judge.observe(*life);
        if (reads) reader.read(*life);
      }
    }
  }

  sim::Universe universe{{.seed = 7, .trace = {}}};
  Judge judge{universe, true};
  Theater theater{universe, judge, Settings{.nodes = 2}};
  Life& a = theater.at(0);
  Life& b = theater.at(1);
  base::Rng rng{5};
  MessageUser reader{theater, rng};
};

/// All that happens is right by the judge.
class TwoUsersTest : public testing::Test, protected TwoUsers {
 protected:
  void TearDown() override { EXPECT_FALSE(judge.failed()) << judge.failure(); }
};

}  // namespace hawser::simulation
