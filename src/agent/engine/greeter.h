#pragma once

// Greeter: Welcomes on paths that are up, in both directions, and which path carries the session's messages after them.
//
// A Welcome says which session its sender means, what it has received, and what credit it gives (docs/wire.md). A path
// carries transfers once the peer's Welcome came on it, and messages once both ways are greeted.
//
// Thread rule: confined to the lane.

#include <hawser/status.h>
#include <hawser/time.h>

#include "agent/engine/arrival_desk.h"
#include "agent/engine/better_paths.h"
#include "agent/engine/card_exchange.h"
#include "agent/engine/connector.h"
#include "agent/engine/fences.h"
#include "agent/engine/message_desk.h"
#include "agent/engine/news.h"
#include "agent/engine/ports.h"
#include "agent/engine/service_table.h"
#include "agent/engine/session_table.h"
#include "agent/session.h"

namespace hawser::agent {

class Greeter {
 public:
  /// What it works with; all of it outlives it.
  struct Uses {
    SessionTable& sessions;
    const Ports& ports;
    const ServiceTable& services;
    Connector& connector;
    Fences& fences;
    BetterPaths& better;
    MessageDesk& messages;
    ArrivalDesk& arrivals;
    CardExchange& exchange;
    const Cards& cards;
    News& news;
  };
  explicit Greeter(const Uses& uses) : uses_(uses) {}

  /// Greets the peer on this path. Where it has no room, `greet_all` tries again.
  void greet(Session& session, PathEntry& entry);
  /// Greets on paths that are up and were not, and chooses the path for messages.
  void greet_all(Session& session, Instant now);
  /// An error is the peer's.
  Status on_welcome(Session& session, PathEntry& entry, const wire::Welcome& welcome, Instant now);
  /// Tells paths that somebody waits for the peer, or does no more: a path cannot see what is gone from it. One that
  /// was told asks a stopped peer at once, and suspects it after three heartbeats.
  static void tell_awaited(Session& session, Instant now);

 private:
  void choose_control(Session& session, Instant now);
  void on_agreed(Session& session, PathEntry& entry, Instant now);
  Status take_credits(Session& session, const wire::Welcome& welcome);

  const Uses uses_;
};

}  // namespace hawser::agent
