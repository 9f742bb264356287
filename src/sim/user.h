#pragma once

// User: what applications do, at random: submit, cancel, send, read, close, open, forget.
//
// Thread rule: one thread. Lifetime: the run's.

#include <cstdint>

#include "sim/theater.h"

namespace hawser::simulation {

class User {
 public:
  explicit User(Theater& theater) : theater_(theater), rng_(theater.rng().fork()) {}

  /// One thing that the user of `life` may do.
  void act(Life& life);
  /// Writes anew where writes to the other wrote that ended since then, or else the last one.
  void write_again(Life& life, Life& to, Instant since);
  /// Takes all that came.
  void read(Life& life);
  /// After everything was healed: plans to earlier lives of a node must say that the peer is gone.
  void try_stale_plans();

 private:
  Life* pick_peer(Life& life);
  void submit_new(Life& life);
  void submit_again(Life& life);
  bool submit(Life& life, Course& course);
  Move* pick_leader(Life& life);
  Course* make_course(Life& life, Life& to);
  bool lease_pairs(Life& life, Course& course, Area& remote);
  Result<Plan> plan(Life& life, Course& course);
  Result<Plan> plan_by_table(Life& life, Course& course);
  Area* pick_remote(Life& to, bool write, bool* bait);
  void retire(Life& life);
  void set_later(Life& life, std::size_t word);
  void cancel(Life& life);
  Area* pick_atomic_area(Life& to, bool bait);
  void ask_atomics(Life& life);
  void ask_atomic(Life& life, Life& to, Area& area, const RemoteRange& range);
  void ask_atomic_again(Life& life);
  void ask_bait(Life& life, Life& to);
  void add_own(Life& life);
  void cancel_atomic(Life& life);
  void send(Life& life);
  void note(Life& life);
  void close_one(Life& life);
  void open_one(Life& life);
  void forget(Life& life);

  Theater& theater_;
  base::Rng rng_;
  std::uint64_t opened_ = 0;
};

}  // namespace hawser::simulation
