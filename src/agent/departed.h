#pragma once

// Departed: incarnations that are known to have died, so that their cards, which may lie in a directory for long, are
// not taken for a living agent again.
//
// A death may have been a misjudgement. Then the agent lives and writes its card anew some day: a card in another
// version than the one that lay there after its death takes it off the list, and so does a session with it.
//
// Thread rule: confined. Bound: kDepartedMax; the earliest is forgotten.

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include <hawser/status.h>

#include "base/id128.h"

namespace hawser::agent {

inline constexpr std::size_t kDepartedMax = 4096;

class Departed {
 public:
  void add(const base::Id128& incarnation, const Status& cause);
  void remove(const base::Id128& incarnation);
  /// Of a card that lies in a directory in this version: how its agent died, or nothing when it may live.
  std::optional<Status> judge(const base::Id128& incarnation, std::uint64_t version);

 private:
  struct Death {
    Status cause;
    std::optional<std::uint64_t> version;  ///< Of its card, when it was looked at first after the death.
  };
  std::unordered_map<base::Id128, Death> deaths_;
  std::deque<base::Id128> order_;  ///< By time; as many.
};

}  // namespace hawser::agent
