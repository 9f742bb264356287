#pragma once

// StatusRoster: the agents of which one status socket tells.
//
// Thread rule: under the mutex of its ProcessStatus. Lifetime: an agent that leaves waits for that mutex, so those
// listed live as long as it is held.

#include <cstddef>
#include <map>

#include "base/id128.h"

namespace hawser::agent {

class Core;

class StatusRoster {
 public:
  void add(const base::Id128& incarnation, Core& core) { all_.emplace(incarnation, &core); }
  void remove(const base::Id128& incarnation) { all_.erase(incarnation); }
  std::size_t size() const { return all_.size(); }
  const std::map<base::Id128, Core*>& all() const { return all_; }

  /// Null: there is none any more.
  Core* find(const base::Id128& incarnation) const {
    const auto found = all_.find(incarnation);
    return found == all_.end() ? nullptr : found->second;
  }
  /// The next one in order, from the zero id on, and its incarnation. Null: that was the last.
  Core* after(base::Id128* incarnation) const {
    const auto found = all_.upper_bound(*incarnation);
    if (found == all_.end()) return nullptr;
    *incarnation = found->first;
    return found->second;
  }

 private:
  std::map<base::Id128, Core*> all_;
};

}  // namespace hawser::agent
