#include "agent/peer_status.h"

#include <string>

namespace hawser::agent {

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
  // Silence, time that is over, and bytes that make no sense prove no death.
  const bool is_proven = cause.code() == Code::kDisconnected && cause.scope() != Scope::kPath;
  const bool is_forgotten = cause.code() == Code::kCancelled;
  return Status(Code::kDisconnected, "peer '" + peer.name +
                                         (is_proven      ? "' is gone"
                                          : is_forgotten ? "' was forgotten"
                                                         : "' was given up"))
      .with_scope(Scope::kPeer)
      .with_peer(peer.name)
      .with_advice("find the peer again and plan again")
      .because(cause);
}

Status down_status(PeerCore& peer) {
  const base::MutexLock lock(peer.use().mutex);
  return gone_status(peer, peer.use().down_cause).with_buffer(BufferState::kUntouched);
}

}  // namespace hawser::agent
