#include "agent/engine/graveyard.h"

#include <memory>

namespace hawser::agent {

void Graveyard::bury() {
  for (Session* const session : uses_.sessions.take_quiet()) {
    uses_.paths.forget_last();
    PeerCore& peer = *session->peer;
    // An agent is never gone for itself: no backend led there, and one that is opened later may.
    if (peer.is_self) {
      peer.state.store(PeerState::kKnown, std::memory_order_release);
    } else {
      uses_.peers.forget(peer);
    }
    destroy(*session);
  }
}

void Graveyard::bury_all() {
  uses_.paths.clear();
  for (Session* const session : uses_.sessions.take_all()) {
    uses_.services.end(*session, Status(Code::kCancelled, "the agent was closed"));
    destroy(*session);
  }
}

/// A session and its peer own each other: one of them has to let go.
void Graveyard::destroy(Session& session) {
  const std::shared_ptr<PeerCore> peer = session.peer;
  uses_.peers.keep_totals(session);
  for (SessionAlarm& alarm : session.alarms) uses_.timers.clear(alarm);
  peer->use().session.reset();
}

}  // namespace hawser::agent
