#pragma once

// Greeting: what the two ends of a path say to each other before it is up: the packets `open` and `accept` with their
// descriptors, and whether what the other end said fits.
//
// Thread rule: confined to the lane; it never blocks. Lifetime: borrows what the backend shares.

#include <cstdint>
#include <string>
#include <utility>

#include <hawser/status.h>

#include "backend/backend.h"
#include "backend/shm/control.h"
#include "backend/shm/gate.h"
#include "backend/shm/link.h"
#include "backend/shm/packet.h"
#include "base/fd.h"
#include "base/id128.h"

namespace hawser::backend::shm {

/// `accept` with a hello that refuses.
Accept refusal_of(const Identity& identity, const Status& why);

class Greeting {
 public:
  struct Uses {
    const Identity& identity;
    const Probe& probe;
    const Gates& gates;
    std::uint32_t ring_bytes = 0;
  };
  /// Whom an opener looks for.
  struct Wanted {
    std::string socket;       ///< Where.
    std::string peer;         ///< Empty: whoever is there.
    base::Id128 incarnation;  ///< Zero: any.
    base::Id128 supersedes;
  };
  /// What one end holds of the link.
  struct Ends {
    Link link;
    base::Fd my_door, peer_door;
  };

  /// The opener's.
  Greeting(const Uses& uses, Wanted wanted) : uses_(uses), wanted_(std::move(wanted)), session_(base::random_id128()) {}
  /// The acceptor's: `session` as the opener named it.
  Greeting(const Uses& uses, const base::Id128& session) : uses_(uses), session_(session) {}

  const Wanted& wanted() const { return wanted_; }
  const base::Id128& session() const { return session_; }

  /// Makes the link, and says hello with it.
  Result<Ends> say_open(int socket) const;
  /// What came with the acceptor's answer. Errors: kCorrupt where the answer makes no sense, the acceptor's own where
  /// it refuses, and kDisconnected where another agent answers than this end looked for.
  Result<PeerGates> take_accept(const Packet& packet, const Accept& accept) const;

  /// What came with `open`, whose descriptors it takes.
  struct Taken {
    Ends ends;
    PeerGates gates;
  };
  static Result<Taken> take_open(Packet& packet, const Open& open);
  Status say_accept(int socket) const;

 private:
  Status refusal_before_hello(int socket, const Status& why) const;
  Status check(const wire::Hello& hello) const;

  const Uses uses_;
  const Wanted wanted_;
  const base::Id128 session_;
};

}  // namespace hawser::backend::shm
