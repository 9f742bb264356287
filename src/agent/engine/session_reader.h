#pragma once

// SessionReader: reads the messages of sessions, and hands each to whom it is for.
//
// Thread rule: confined to the lane.

#include <hawser/status.h>
#include <hawser/time.h>

#include "agent/engine/arrival_desk.h"
#include "agent/engine/card_exchange.h"
#include "agent/engine/connector.h"
#include "agent/engine/greeter.h"
#include "agent/engine/message_desk.h"
#include "agent/engine/path_index.h"
#include "agent/engine/session_link.h"
#include "wire/session.h"

namespace hawser::agent {

class SessionReader {
 public:
  /// What it works with; all of it outlives it.
  struct Uses {
    PathIndex& paths;
    SessionLink& link;
    Connector& connector;
    Greeter& greeter;
    MessageDesk& messages;
    ArrivalDesk& arrivals;
    CardExchange& exchange;
  };
  explicit SessionReader(const Uses& uses) : uses_(uses) {}

  /// A peer that breaks the rules is dropped.
  void on_message(const backend::PortEvent& event, Instant now);

 private:
  Status read(Session& session, const backend::PortEvent& event, Instant now);
  Status read_reliable(Session& session, const wire::Envelope& envelope, Instant now);
  Status read_plain(Session& session, const backend::Path* path, const wire::Envelope& envelope, Instant now);
  Status on_bye(Session& session, const wire::Bye& bye, Instant now);

  const Uses uses_;
};

}  // namespace hawser::agent
