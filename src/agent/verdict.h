#pragma once

// Verdict: what it means for a peer that no path to it could be opened, by what each backend said of it.
//
// Dead, suspect and unreachable are defined for users in docs/errors.md; this is where attempts to connect are judged
// by it. Proof by one backend is enough for death, and nothing less is death: a backend that does not lead to the peer
// says nothing of the peer.
//
// Thread rule: a pure function of values.

#include <span>
#include <string_view>

#include <hawser/status.h>

#include "proto/peer_state.h"

namespace hawser::agent {

/// What one backend's last attempt came to, or why there was none.
struct Attempt {
  std::string backend;
  Status why;  ///< Not good.
  bool leads_nowhere =
      false;             ///< The backend was not tried: it says that it does not lead to the peer, or did not open.
  bool refused = false;  ///< See backend::PortEvent::refused.
};

struct Verdict {
  proto::SessionEvent event = proto::SessionEvent::kPathLost;
  Status cause;  ///< Names every backend's reason, and every advice.
};

/// One reason of a chain: the backend, why it does not do, and what helps.
Status reason_of(const Attempt& attempt);

/// What ends a session for which no path came up in its time. One that was up was lost, whatever kept this agent from
/// finding it again: its last failure (a socket that is gone) may read as if nothing had ever led there.
Status status_at_deadline(const Status& last_failure, bool was_up);

Verdict judge_attempts(std::string_view peer, std::span<const Attempt> attempts);

}  // namespace hawser::agent
