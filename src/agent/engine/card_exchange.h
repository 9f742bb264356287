#pragma once

// CardExchange: cards between agents in session: asked for, sent in parts, taken in.
//
// Thread rule: confined to the lane.

#include <cstddef>
#include <cstdint>

#include <hawser/status.h>
#include <hawser/time.h>

#include "agent/engine/connector.h"
#include "agent/engine/news.h"
#include "agent/engine/region_bindings.h"
#include "agent/engine/session_link.h"
#include "agent/engine/session_table.h"
#include "agent/engine/surroundings.h"
#include "wire/session.h"

namespace hawser::agent {

class CardExchange {
 public:
  /// What it works with; all of it outlives it.
  struct Uses {
    SessionTable& sessions;
    SessionLink& link;
    Connector& connector;
    RegionBindings& bindings;
    Cards& cards;
    PeerRegister& peers;
    News& news;
  };
  explicit CardExchange(const Uses& uses) : uses_(uses) {}

  /// The peer's card is asked for.
  void want(Session& session, Instant now);
  /// The peer's card is asked for in such a way that it answers though nothing changed. PeerCore::card_checks counts
  /// the answers. Only while the session is up.
  void check(Session& session);
  /// Whose card is here in full is asked for what changes: once in a session, and when it has a newer one than it told.
  void follow(Session& session, std::uint64_t revision);
  /// This agent's card has changed.
  void on_own_change();
  /// A card of the peer was taken in, from wherever it came.
  void on_loaded(PeerCore& peer, const CardStore::Change& change, Instant now);

  /// An error is the peer's.
  Status on_request(Session& session, const wire::CardRequest& request);
  Status on_part(Session& session, const wire::CardPart& part, Instant now);
  /// Asks, and tells. False: there is no room for the rest now.
  bool pump(Session& session, std::size_t* work);
  /// The session's paths are gone, and what was under way on them.
  static void forget(Session& session);

 private:
  bool pump_request(Session& session, std::size_t* work);
  bool pump_card(Session& session, std::size_t* work);
  void make_card(Session& session);

  const Uses uses_;
};

}  // namespace hawser::agent
