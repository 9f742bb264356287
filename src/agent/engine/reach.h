#pragma once

// Reach: which backends lead to a peer, by its card and what each backend says of the address there.
//
// Thread rule: confined to the lane.

#include <cstddef>
#include <string>
#include <vector>

#include <hawser/status.h>

#include "agent/backend_reports.h"
#include "agent/engine/ports.h"
#include "agent/peer_core.h"
#include "agent/session.h"
#include "agent/verdict.h"

namespace hawser::agent {

class Reach {
 public:
  /// Both outlive it.
  Reach(const Ports& ports, const BackendReports& reports) : ports_(ports), reports_(reports) {}

  /// Empty: none is known.
  std::string address_of(PeerCore& peer, std::size_t backend) const;
  /// Good where the backend leads to the peer.
  Status refusal_of(PeerCore& peer, std::size_t backend) const;
  /// Backends that lead to the peer, in order of preference; `why` gets one reason per other backend.
  std::vector<std::size_t> candidates(PeerCore& peer, std::vector<Status>* why = nullptr) const;
  /// Why each backend without a path to the peer has none. It names backends that did not open here, too, if the peer
  /// could be reached by them.
  std::vector<Attempt> attempts_of(const Session& session) const;

 private:
  void add_left_out(PeerCore& peer, std::vector<Attempt>* attempts) const;

  const Ports& ports_;
  const BackendReports& reports_;
};

}  // namespace hawser::agent
