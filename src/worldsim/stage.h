#pragma once

// Stage: the ranks of one run, opened, turned and ended. Real ranks, with real agents, on simulated hosts.
//
// Thread rule: one thread. Lifetime: the run's.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worldsim/judge.h"
#include "worldsim/settings.h"

namespace hawser::worldsim {

class Stage {
 public:
  Stage(sim::Universe& universe, WorldJudge& judge, const Settings& settings);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  /// All ranks know each other and have sessions. False: they did not come up.
  bool open();
  const std::vector<std::unique_ptr<Actor>>& actors() const { return actors_; }
  Actor& at(std::size_t number) { return *actors_[number]; }
  sim::Universe& universe() { return universe_; }
  WorldJudge& judge() { return judge_; }
  const Settings& settings() const { return settings_; }
  base::Rng& rng() { return universe_.world.rng(); }

  /// Called after each turn of an actor.
  void on_turned(std::function<void(Actor&)> call) { turned_ = std::move(call); }
  /// The process is gone, without a word.
  void crash(Actor& actor, bool power);
  /// The process leaves or closes its worlds by this call, and ends. `before_end` looks once more what has ended. The
  /// call lets time pass in its midst, so there is one at a time.
  void end_by(Actor& actor, const std::function<Status()>& call, const std::function<void()>& before_end);
  bool is_blocked() const { return is_blocked_; }
  /// The process is in the midst of such a call.
  static bool is_blocking(const Actor& actor);
  /// Other ranks of its process have not ended.
  static bool has_living_mates(const Actor& actor);
  /// Others still need the rank as a relay; they are told that it leaves. Called until the answer is no: what
  /// World::shutdown does while it waits.
  bool is_needed(const Actor& actor);

 private:
  void end(Actor& actor);
  void cast_world(std::size_t world);
  AgentOptions agent_options(const std::string& name);
  WorldOptions world_options(std::size_t world);
  Result<Agent> open_agent(AgentOptions options, const Actor& actor, const runtime::SeatHooks::Tenant& tenant);
  runtime::SeatHooks hooks_of(Actor& actor);
  void open(Actor& actor);
  void introduce(std::size_t world);
  sim::Host::Turned turn(Process& process);
  void run_later(Actor& actor, std::function<void()> job);
  void run_job(Actor& actor);

  sim::Universe& universe_;
  WorldJudge& judge_;
  const Settings& settings_;
  std::vector<std::unique_ptr<Actor>> actors_;
  std::vector<std::shared_ptr<runtime::WorldCore>> cores_;  ///< By actor, while the worlds open.
  std::function<void(Actor&)> turned_;
  bool is_blocked_ = false;
};

}  // namespace hawser::worldsim
