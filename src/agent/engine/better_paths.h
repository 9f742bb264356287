#pragma once

// BetterPaths: back to a better path. A session that lost the path of a backend it prefers goes on by another one, and
// tries the better again, in pauses that grow. Nothing stays on a socket because a device was away for a moment.
//
// Thread rule: confined to the lane.

#include <cstdint>

#include <hawser/time.h>

#include "agent/engine/path_opener.h"
#include "agent/engine/reach.h"
#include "agent/engine/session_table.h"
#include "agent/session.h"
#include "base/rng.h"

namespace hawser::agent {

class BetterPaths {
 public:
  /// What they work with; all of it outlives them.
  struct Uses {
    const SessionTable& sessions;
    const Reach& reach;
    PathOpener& opener;
    SessionTimers& timers;
    base::Rng& rng;
    Duration peer_timeout;
  };
  explicit BetterPaths(const Uses& uses) : uses_(uses) {}

  /// Opens the backend that leads to the peer and comes before those of the paths that are there. Gives the new path's
  /// serial; 0: there is none.
  std::uint64_t open(Session& session, Instant deadline, Instant now);
  /// True while the path is on its way: neither agreed upon nor gone.
  static bool is_opening(const Session& session, std::uint64_t serial);
  /// A path was lost, or one was agreed upon: tries a better one after a pause where one is missing.
  void seek_later(Session& session, Instant now);
  /// The same, and otherwise nothing is to be tried any more.
  void on_path_agreed(Session& session, Instant now);
  /// It is time (SessionTimer::kBetter).
  void seek(Session& session, Instant now);
  /// The user wants it tried now; pauses begin short again.
  void seek_now(Session& session, Instant now);

 private:
  bool is_missing(const Session& session) const;

  const Uses uses_;
};

}  // namespace hawser::agent
