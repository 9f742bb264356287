#pragma once

// CourseMaker: plans of transfers between random leases of this end's memory and a peer's.
//
// Thread rule: one thread. Lifetime: the run's.

#include "sim/theater.h"

namespace hawser::simulation {

class CourseMaker {
 public:
  /// Draws from `rng`, the user's.
  CourseMaker(Theater& theater, base::Rng& rng) : theater_(theater), rng_(rng) {}

  /// A course of `life` to or from `to`, which keeps it. Null: nothing there can be used now.
  Course* make(Life& life, Life& to);
  /// Makes room for another: an idle course gives its leases back once there are many. False: there is no room.
  bool make_room(Life& life);

 private:
  Area* pick_remote(Life& to, bool write, bool* bait);
  bool lease_pairs(Life& life, Course& course, Area& remote);
  Result<Plan> plan(Life& life, Course& course);
  Result<Plan> plan_by_table(Life& life, Course& course);
  void check_refusal(Life& life, const Course& course, const Area& remote, const Status& status);
  static void give_back(const Course& course);

  Theater& theater_;
  base::Rng& rng_;
};

}  // namespace hawser::simulation
