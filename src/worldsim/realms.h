#pragma once

// Realms: the worlds of a run, each the same for all its ranks.
//
// Thread rule: one thread. Lifetime: the run's.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "worldsim/cast.h"

namespace hawser::worldsim {

class Realms {
 public:
  explicit Realms(sim::Universe& universe) : universe_(universe) {}

  Realm& open(std::vector<std::size_t> actors, std::uint64_t seed);
  /// The realm that a shrink or a group gave an actor; the same for all that have it.
  Realm& derive(Realm& parent, bool is_group, const std::vector<std::size_t>& actors,
                const std::function<bool(std::size_t)>& is_gone);
  /// A rank of it died, or a collective ended badly.
  void doom(Realm& realm);
  const std::deque<std::unique_ptr<Realm>>& all() const { return all_; }
  /// Of a realm, a deed or a call.
  std::uint64_t new_uid() { return next_uid_++; }

 private:
  sim::Universe& universe_;
  std::deque<std::unique_ptr<Realm>> all_;
  std::uint64_t next_uid_ = 1;
};

}  // namespace hawser::worldsim
