#pragma once

// TransferUser: a user's transfers: submits new ones and old ones again, with options at random, and cancels them.
//
// Thread rule: one thread. Lifetime: the run's.

#include <string>

#include "sim/course_maker.h"
#include "sim/peer_choice.h"

namespace hawser::simulation {

class TransferUser {
 public:
  /// Draws from `rng`, the user's.
  TransferUser(Theater& theater, base::Rng& rng)
      : theater_(theater), rng_(rng), peers_(theater, rng), courses_(theater, rng) {}

  void submit_new(Life& life);
  void submit_again(Life& life);
  /// Writes anew where writes to the other wrote that ended since then, or else the last one.
  void write_again(Life& life, Life& to, Instant since);
  /// One that is under way.
  void cancel(Life& life);
  /// After everything was healed: plans to earlier lives of a node must say that the peer is gone.
  void try_stale_plans();

 private:
  /// What a submission refers to.
  struct Extras {
    std::string text;
    SignalTarget signal;
    SignalWord after, done;
  };

  bool submit(Life& life, Course& course);
  SubmitOptions draw(Life& life, Course& course, Move& move, Extras& extras);
  void draw_signal(Life& life, const Course& course, Move& move, Extras& extras, SubmitOptions& options);
  void draw_words(Life& life, Move& move, Extras& extras, SubmitOptions& options);
  Move* pick_leader(Life& life);
  void set_later(Life& life, std::size_t word);

  Theater& theater_;
  base::Rng& rng_;
  PeerChoice peers_;
  CourseMaker courses_;
};

}  // namespace hawser::simulation
