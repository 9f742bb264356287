#pragma once

// Mishaps: faults, each aimed at a moment. A seed draws a few pairs of fault and moment; each waits until a rank is
// there, strikes within a short time, and is counted where the rank still is.
//
// Thread rule: one thread. Lifetime: the run's.

#include <optional>
#include <vector>

#include "worldsim/coverage.h"
#include "worldsim/stage.h"

namespace hawser::worldsim {

class Mishaps {
 public:
  explicit Mishaps(Stage& stage);

  /// Looks whether an aim has come into sight. Called often.
  void look();
  const Coverage& coverage() const { return coverage_; }
  std::size_t struck() const { return struck_; }

 private:
  struct Aim {
    Fault fault = Fault::kCrash;
    Moment moment = Moment::kCollective;
    Instant not_before;
  };
  bool is_at(const Actor& actor, Moment moment) const;
  static bool knows(const Actor& actor, const Deed& deed);
  bool has_decided(const Actor& actor) const;
  bool relays(const Actor& actor) const;
  Actor* find(Moment moment);
  Actor* other_than(const Actor& actor);
  bool may_die(const Actor& actor) const;
  void strike(const Aim& aim, Actor& actor);
  void lose_last_words(const Actor& actor);
  void strike_process(Fault fault, Actor& actor);
  void strike_link(Fault fault, Actor& from, Actor& to);
  void strike_all(Fault fault);
  Duration span();
  void silence(Duration time);

  Stage& stage_;
  base::Rng rng_;
  Coverage coverage_;
  std::vector<Aim> aims_;
  std::size_t struck_ = 0;
  Duration silent_{};  ///< So long ranks did not hear each other in all.
};

}  // namespace hawser::worldsim
