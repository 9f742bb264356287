#pragma once

// Chaos: faults, each aimed at a phase. A seed draws a few (fault, phase) pairs; each waits until two agents are in
// that phase, then strikes there, and is counted.
//
// Thread rule: one thread. Lifetime: the run's.

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "sim/coverage.h"
#include "sim/theater.h"

namespace hawser::simulation {

class Chaos {
 public:
  Chaos(Theater& theater, std::size_t aims);

  /// Looks whether an aim has come into sight. Called often.
  void look();
  /// No more faults; whole links, full pace, everything running. Dead nodes stay dead or have been restarted.
  void heal();
  /// Called for who goes on by another connection while bytes of the last one are still to come.
  void on_gone_on(std::function<void(Life& from, Life& to, Instant lost)> call) { gone_on_ = std::move(call); }
  const Coverage& coverage() const { return coverage_; }
  std::size_t struck() const { return struck_; }

 private:
  struct Aim {
    Fault fault = Fault::kLoss;
    Step step = Step::kConnect;
    Instant not_before;
  };
  struct Target {
    Life* from = nullptr;
    Life* to = nullptr;
    Life* closing = nullptr;  ///< kClose: who closes.
  };
  std::optional<Target> find(Step step);
  std::optional<Target> find_connecting(Step step);
  std::optional<Target> find_move(Step step);
  std::optional<Target> find_note();
  std::optional<Target> find_atomic(Step step);
  std::optional<Target> find_closing();
  std::optional<Target> close_under_move();
  std::optional<Target> close_under_own_move();
  void strike(Fault fault, const Target& target);
  void strike_process(Fault fault, Life& victim);
  void take_device(Life& victim);
  void reset_late(Life& from, Life& to);
  void strike_links(Fault fault, Life& from, Life& to);
  void break_mapped(const Life& from, const Life& to);
  void trouble_all(const Life& victim, Duration time, Reasons::Harm harm);
  void restart_later(Life& victim, Duration pause);
  Duration span(std::int64_t short_us, std::int64_t long_us);
  Duration silence(std::int64_t short_us, std::int64_t long_us);

  Theater& theater_;
  base::Rng rng_;
  Coverage coverage_;
  std::vector<Aim> aims_;
  std::size_t struck_ = 0;
  std::function<void(Life&, Life&, Instant)> gone_on_;
  bool is_healed_ = false;
};

}  // namespace hawser::simulation
