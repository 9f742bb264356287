#pragma once

// PathHellos: the hellos of one path's streams: what this end says, and whether who answers is the peer that it looked
// for and may be trusted.
//
// Thread rule: confined to the port's lane. Lifetime: what it uses outlives it.

#include <string>

#include <hawser/status.h>
#include <hawser/time.h>

#include "backend/backend.h"
#include "backend/stream/handshake.h"
#include "backend/stream/port.h"
#include "backend/stream/stream.h"
#include "base/id128.h"
#include "wire/hello.h"

namespace hawser::backend::stream {

/// What the two ends of a session agree on.
struct SessionTerms {
  bool is_inbound = false;
  unsigned streams = 1;
  base::Id128 session, token, supersedes;
  base::Id128 expects;  ///< The peer's incarnation; zero: whoever listens there.
  Known known;          ///< Secret and key, from the peer's card.
};

class PathHellos {
 public:
  struct Uses {
    const Context& context;
    const PortOptions& options;
    Network& network;
    const SessionTerms& terms;
    const Identity& peer;     ///< As far as it is known.
    const std::string& name;  ///< The peer's, as errors tell it.
  };
  explicit PathHellos(const Uses& uses) : uses_(uses) {}

  /// Moves the handshake of stream `index` on. Good: it is through, or goes on until `deadline`.
  Status turn(Handshake& shake, unsigned index, Instant deadline, Instant now);
  bool is_through(const Handshake& shake) const;
  /// Somebody answered in the last turn who did not prove to be the peer.
  bool is_doubted() const { return is_doubted_; }
  /// Only its incarnation tells who answers: an address may lead to somebody else, as docker0's does on every host.
  bool is_the_peer(const wire::Hello& hello) const;

 private:
  wire::Hello our_hello(unsigned index) const;
  bool is_open() const { return uses_.context.security == Security::kNone; }
  Status check_answer(const wire::Hello& hello) const;
  Status judge_answer(Handshake& shake);
  Status doubt(const Status& why);

  const Uses uses_;
  bool is_doubted_ = false;
};

}  // namespace hawser::backend::stream
