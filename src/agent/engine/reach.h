#pragma once

// Reach: which backends lead to a peer, by its card and what each backend says of the address there.
//
// Thread rule: confined to the lane.

#include <cstddef>
#include <string>
#include <vector>

#include <hawser/status.h>

#include "agent/engine/ports.h"
#include "agent/peer_core.h"
#include "agent/session.h"
#include "agent/verdict.h"

namespace hawser::agent {

class Reach {
 public:
  explicit Reach(const Ports& ports) : ports_(ports) {}

  /// Empty: none is known.
  std::string address_of(PeerCore& peer, std::size_t backend) const;
  /// Good where the backend leads to the peer.
  Status refusal_of(PeerCore& peer, std::size_t backend) const;
  /// Backends that lead to the peer, in order of preference; `why` gets one reason per other backend.
  std::vector<std::size_t> candidates(PeerCore& peer, std::vector<Status>* why = nullptr) const;
  /// Of the backends that have no path to the peer: why.
  std::vector<Attempt> attempts_of(const Session& session) const;

 private:
  const Ports& ports_;
};

}  // namespace hawser::agent
