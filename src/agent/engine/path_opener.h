#pragma once

// PathOpener: opens paths of a session by a backend, and gives paths their serials.
//
// Thread rule: confined to the lane.

#include <cstddef>
#include <cstdint>

#include <hawser/time.h>

#include "agent/engine/path_index.h"
#include "agent/engine/ports.h"
#include "agent/engine/reach.h"
#include "agent/session.h"

namespace hawser::agent {

class PathOpener {
 public:
  PathOpener(Ports& ports, PathIndex& paths, const Reach& reach) : ports_(ports), paths_(paths), reach_(reach) {}

  /// Starts connecting. The new path is the session's last. False: session.failed tells why.
  bool open(Session& session, std::size_t backend, Instant deadline, Instant now, const base::Id128& supersedes);
  /// Enters a path that the peer opened.
  PathEntry& enter(Session& session, std::size_t backend, backend::Path* path);

 private:
  Ports& ports_;
  PathIndex& paths_;
  const Reach& reach_;
  std::uint64_t next_serial_ = 1;
};

}  // namespace hawser::agent
