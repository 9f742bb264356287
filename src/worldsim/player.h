#pragma once

// Player: what the program of each rank does. It calls the collectives of its world's script, sends and receives
// letters and makes calls beside them, agrees with the others at the end whether all went well, and shrinks the world
// where it did not. Then it goes on in the new one.
//
// Thread rule: one thread. Lifetime: the run's.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "worldsim/stage.h"

namespace hawser::worldsim {

class Player {
 public:
  explicit Player(Stage& stage);

  /// All ranks enter.
  void begin();
  /// Looks what has ended, and acts upon it.
  void observe(Actor& actor);
  bool are_all_out() const;

 private:
  void plan(Actor& actor);
  void act(Actor& actor);
  void act_in_world(Actor& actor);
  void enter(Actor& actor, Membership& membership);
  bool call_next(Actor& actor, Membership& membership);
  void begin_collective(Actor& actor, Membership& membership);
  Request start(Actor& actor, Membership& membership, Deed& deed, const CollectiveOptions& options);
  void make_group(Actor& actor);
  void leave_groups(Actor& actor);
  void drop(Actor& actor, Membership& membership);
  Membership& pick(Actor& actor);
  void send(Actor& actor);
  void receive(Actor& actor);
  void call(Actor& actor);
  void cancel_one(Actor& actor);
  void register_handlers(Actor& actor, Membership& membership);
  void agree(Actor& actor);
  void shrink(Actor& actor);
  void agree_on(Actor& actor);
  void go_on(Actor& actor, Deed& deed, Result<World> made);
  void recover(Actor& actor);
  void leave(Actor& actor);
  void close(Actor& actor);
  void on_end(Actor& actor, Deed& deed, const Status& status);
  void on_collective(Actor& actor, const Deed& deed, const Status& status);
  void on_agreement(Actor& actor, Deed& deed, const Status& status);
  Deed& new_deed(Actor& actor, DeedKind kind, const Membership& membership, Duration timeout);
  void begun(Actor& actor, Deed& deed);
  /// The others may hold it for failed though it lives.
  bool may_be_out(const Actor& actor) const { return judge_.accuses() || judge_.is_gone(actor.number); }
  bool is_idle(const Actor& actor, const Realm& realm) const;
  bool is_through(const Actor& actor, const Membership& membership) const;
  Duration timeout();
  /// With which it waits for the others to agree.
  Duration patience();

  Stage& stage_;
  WorldJudge& judge_;
  const Settings& settings_;
  base::Rng rng_;
  bool has_erred_ = false;
};

}  // namespace hawser::worldsim
