#pragma once

// Waiting and WaitVisitor: who waits for whom, since when, as ports and the agent's parts and services tell it.
//
// Thread rule: the lane's. Lifetime: views hold for one call of the visitor.

#include <cstddef>
#include <functional>
#include <string_view>

#include <hawser/time.h>

namespace hawser::backend {

struct Waiting {
  std::string_view who;            ///< The backend, part or service.
  std::string_view what;           ///< What it waits for, for people; " of `peer`" follows.
  std::string_view peer;           ///< Empty: nobody at a peer.
  std::size_t count = 1;           ///< So many of the same.
  Instant since = Instant::min();  ///< The oldest; Instant::min(): not known.
  Instant until = Instant::max();  ///< The first deadline.
};

using WaitVisitor = std::function<void(const Waiting&)>;

}  // namespace hawser::backend
