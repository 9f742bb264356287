#pragma once

// Verdict: whether a run of worlds broke a promise. The first one counts.
//
// Thread rule: one thread. Lifetime: the run's.

#include <string>

#include <fmt/format.h>

#include "backend/sim/factory.h"

namespace hawser::worldsim {

class Verdict {
 public:
  explicit Verdict(sim::Universe& universe) : universe_(universe) {}

  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }
  void fail(const std::string& what) {
    if (failed()) return;
    failure_ = fmt::format("at {:.6f} s, {}", static_cast<double>(universe_.world.now().ns()) / 1e9, what);
    universe_.world.note("FAILED", failure_);
  }

 private:
  sim::Universe& universe_;
  std::string failure_;
};

}  // namespace hawser::worldsim
