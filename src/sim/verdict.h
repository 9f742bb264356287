#pragma once

// Verdict: the first broken promise of a run, with the virtual time and the life that it is about.
//
// Thread rule: one thread.

#include <cstdint>
#include <string>

#include "sim/life.h"

namespace hawser::simulation {

class Verdict {
 public:
  explicit Verdict(sim::Universe& universe) : universe_(universe) {}

  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }
  /// The first one counts.
  void fail(const Life& life, const std::string& what);

 private:
  sim::Universe& universe_;
  std::string failure_;
};

/// Numbers of whatever writes to memory. Each is given once.
class WriterNumbers {
 public:
  std::uint64_t take() { return next_++; }

 private:
  std::uint64_t next_ = 1;
};

}  // namespace hawser::simulation
