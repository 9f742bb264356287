#pragma once

// For tests of the members of WorldJudge: a realm of three ranks without agents, and deeds of them.
//
// Thread rule: the test's thread.

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "worldsim/judge_uses.h"

namespace hawser::worldsim {

struct TestCourt {
  TestCourt() {
    for (std::size_t number = 0; number < 3; ++number) {
      Actor& actor = *all.emplace_back(std::make_unique<Actor>());
      actor.number = number;
      actor.name = "rank-" + std::to_string(number);
      actor.is_alive = true;
      actor.host = sim::Host::create(universe.world, actor.name, static_cast<std::uint32_t>(number));
    }
    actors.set(all);
  }
  Deed& deed(std::uint32_t rank, DeedKind kind) {
    Deed& made = *all[rank]->deeds.emplace_back(std::make_unique<Deed>());
    made.kind = kind;
    made.realm = &realm;
    made.rank = rank;
    made.begun = universe.world.now();
    made.due = made.begun + std::chrono::seconds(1);
    return made;
  }
  static Status ended(Code code, const std::string& peer = {}) { return Status(code, "test").with_peer(peer); }
  void gone(std::size_t actor) {
    all[actor]->is_alive = false;
    fates.on_gone(*all[actor]);
  }

  sim::Universe universe{{.seed = 7, .trace = {}}};
  Verdict verdict{universe};
  Actors::All all;
  Actors actors;
  Realms realms{universe};
  Realm& realm = realms.open({0, 1, 2}, 5);
  Fates fates{universe, verdict, realms, actors};
  TroubleTimes times;
  WorldRules rules;
  JudgeUses uses{
      .universe = universe, .verdict = verdict, .fates = fates, .actors = actors, .times = times, .rules = rules};
};

}  // namespace hawser::worldsim
