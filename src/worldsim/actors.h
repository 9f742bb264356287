#pragma once

// Actors: the ranks of a run, as its judges look at them.
//
// Thread rule: one thread. Lifetime: what it was set to lives as long as the run.

#include <cstddef>
#include <memory>
#include <vector>

#include "worldsim/cast.h"

namespace hawser::worldsim {

class Actors {
 public:
  using All = std::vector<std::unique_ptr<Actor>>;

  void set(const All& all) { all_ = &all; }
  const std::unique_ptr<Actor>& operator[](std::size_t number) const { return (*all_)[number]; }
  All::const_iterator begin() const { return all_->begin(); }
  All::const_iterator end() const { return all_->end(); }

 private:
  const All* all_ = nullptr;
};

}  // namespace hawser::worldsim
