#pragma once

// Reasons: what may excuse a bad end, or a late one: who was parted from whom, or held up, and when.
//
// Thread rule: one thread. Lifetime: the run's.

#include <cstdint>
#include <map>
#include <vector>

#include "sim/life.h"

namespace hawser::simulation {

class Reasons {
 public:
  explicit Reasons(sim::Universe& universe) : universe_(universe) {}

  /// Two that do not hear each other for so long in all stay together, whatever else is done to them.
  void expect_patience(Duration patience) { patience_ = patience; }
  /// How long a host stood still or slow: added to its bounds.
  void excuse(const Life& life, Duration span);
  enum class Harm : std::uint8_t {
    kDelays,    ///< Bytes that one sends to the other come late.
    kSilences,  ///< They do not hear each other, and where that lasts too long they give each other up.
    kCutsOff,   ///< They may give each other up.
  };
  /// Between these nodes things may go wrong for `span` from now, and for as long as mending takes.
  void trouble(std::size_t a, std::size_t b, Duration span, Harm harm);

  /// How long after its deadline something of this life may end.
  Duration allowance(const Life& life) const;
  bool may_be_late(const Life& life, const Life& to, Instant submitted, Instant due) const;
  bool may_be_cut_off(Life& life, Life& other, Instant since) const;

 private:
  struct Trouble {
    std::size_t a, b;
    Duration span;
    Instant until;
    Harm harm;
    bool is_between(const Life& one, const Life& other) const {
      return (a == one.node && b == other.node) || (a == other.node && b == one.node);
    }
  };
  bool troubled(const Life& a, const Life& b, Instant since, Harm harm) const;
  bool are_parted(const Life& a, const Life& b, Instant since) const;

  sim::Universe& universe_;
  std::map<const Life*, Duration, EarlierLife> excused_;
  std::vector<Trouble> troubles_;
  Duration patience_{};
};

}  // namespace hawser::simulation
