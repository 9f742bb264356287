#pragma once

// Waiting and Visitor: who waits for whom, since when. Each part and service tells what of its own is under way.
//
// Thread rule: under the lane's lock. Lifetime: views hold for one call of the visitor.

#include <functional>
#include <string_view>

#include <hawser/time.h>

namespace hawser::agent {

struct Waiting {
  std::string_view who;            ///< The part or service.
  std::string_view what;           ///< What it waits for, for people.
  std::string_view peer;           ///< Empty: nobody at a peer.
  std::size_t count = 1;           ///< So many of the same.
  Instant since = Instant::min();  ///< The oldest; Instant::min(): not known.
  Instant until = Instant::max();  ///< The first deadline.
};

using Visitor = std::function<void(const Waiting&)>;

}  // namespace hawser::agent
