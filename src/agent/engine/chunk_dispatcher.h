#pragma once

// ChunkDispatcher: offers the chunks of transfers to paths until these push back, hears how each ended, and offers
// again what a lost path did not bring over.
//
// Thread rule: confined to the lane.

#include <cstddef>
#include <cstdint>
#include <span>

#include <hawser/status.h>
#include <hawser/time.h>

#include "agent/engine/arrive_sender.h"
#include "agent/engine/at_once.h"
#include "agent/engine/connector.h"
#include "agent/engine/fences.h"
#include "agent/engine/held_transfers.h"
#include "agent/engine/path_index.h"
#include "agent/engine/ports.h"
#include "agent/engine/router.h"
#include "agent/engine/session_table.h"
#include "agent/engine/surroundings.h"
#include "agent/engine/transfer_table.h"
#include "agent/slot.h"

namespace hawser::agent {

class ChunkDispatcher {
 public:
  /// What it works with; all of it outlives it.
  struct Uses {
    SessionTable& sessions;
    Ports& ports;
    PathIndex& paths;
    TransferTable& transfers;
    HeldTransfers& held;
    ArriveSender& arrives;
    Router& router;
    Connector& connector;
    Fences& fences;
    AtOnce& at_once;
    SlotPool& slots;
    const PeerRegister& peers;
  };
  explicit ChunkDispatcher(const Uses& uses) : uses_(uses) {}

  /// Takes a submission in. An error means that it was not taken and nothing happened.
  Status accept(Slot& slot, Instant now);
  /// As `accept`, by the submitting thread, which offers the chunks to the path and lets the port move them at once.
  /// Where nothing waits before it no list is touched that it would leave again.
  Status start(Slot& slot, Instant now);

  /// What was accepted for this peer is offered in this turn.
  void serve_soon(PeerCore& peer) {
    if (peer.session()) uses_.sessions.enlist(*peer.session());
  }

  /// Offers what waits in the session. Returns how much was done.
  std::size_t offer(Session& session, Instant now);
  void on_chunk_done(const backend::PortEvent& event, Instant now);
  /// Those whose leader has ended: they begin, end with it, or wait for their word.
  std::size_t serve_called(Instant now);
  /// Those whose word is there begin.
  std::size_t check_held(Instant now);

 private:
  enum class Offer : std::uint8_t { kAll, kBlocked, kEnded };

  void serve_now(PeerCore& peer, Instant now);
  void turn_control(Session& session, Instant now);
  Offer advance(Slot& slot, Session& session, Instant now);
  bool carries_arrivals(const PathEntry& entry, const Slot& slot) const;
  Offer offer_chunks(Slot& slot, PathEntry& entry, Instant now);
  Offer offer_only_chunk(Slot& slot, PathEntry& entry, Instant now);
  Offer offer_batches(Slot& slot, PathEntry& entry, std::span<backend::Chunk> batch, Instant now);
  Offer conclude(Slot& slot, Session& session, Instant now);
  void end_failed_chunk(Slot& slot, Session& session, PathEntry* entry, const backend::PortEvent& event);
  void begin_held(Slot& slot, Instant now);
  void wait_in_line(Slot& slot, Session& session);

  const Uses uses_;
};

}  // namespace hawser::agent
