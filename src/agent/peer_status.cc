#include "agent/peer_status.h"

#include <string>

namespace hawser::agent {

bool is_given_up(const Status& cause) {
  switch (cause.code()) {
    case Code::kOk:           // It is not down.
    case Code::kBusy:         // It answers, and has no place.
    case Code::kUnsupported:  // It answers, and cannot be talked to.
    case Code::kCancelled:    // It was forgotten.
      return false;
    case Code::kDisconnected:
      return cause.scope() == Scope::kPath;  // Else its death is proven.
    default:
      return true;  // Silence, time that is over, and bytes that make no sense prove no death.
  }
}

Status gone_status(const PeerCore& peer, const Status& cause) {
  if (cause.code() == Code::kBusy) {
    return Status(Code::kBusy, "peer '" + peer.name + "' has no place for this agent: " + std::string(cause.message()))
        .with_scope(Scope::kPeer)
        .with_peer(peer.name)
        .with_advice("mend what it names, find the peer again and plan again")
        .because(cause.cause());
  }
  // Finding the peer again does not help a user who cannot talk to it: the advice is the cause's.
  if (cause.code() == Code::kUnsupported) {
    return Status(Code::kUnsupported, "peer '" + peer.name + "' cannot be talked to: " + std::string(cause.message()))
        .with_scope(Scope::kPeer)
        .with_peer(peer.name)
        .with_advice(cause.advice())
        .because(cause.cause());
  }
  const bool is_forgotten = cause.code() == Code::kCancelled;
  const bool may_return = is_given_up(cause);
  return Status(Code::kDisconnected, "peer '" + peer.name +
                                         (may_return     ? "' was given up"
                                          : is_forgotten ? "' was forgotten"
                                                         : "' is gone"))
      .with_scope(Scope::kPeer)
      .with_peer(peer.name)
      .with_advice(may_return ? "try again: the next call connects anew" : "find the peer again and plan again")
      .because(cause);
}

Status down_status(PeerCore& peer) {
  const base::MutexLock lock(peer.mutex);
  return gone_status(peer, peer.down_cause).with_buffer(BufferState::kUntouched);
}

}  // namespace hawser::agent
