#pragma once

// The engine: sessions and transfers of one agent, moved on by whoever holds the lane's lock. Nothing here blocks,
// sleeps or reads a clock.
//
// It owns the members in agent/engine/, joins them, and turns them. Each has a part of the work, and names those that
// it works with; docs/architecture.md ("The engine's members") tells which does what. A submission comes in by the
// chunk dispatcher, its chunks go to paths, their ends come back as port events, and the transfer table publishes the
// outcome. Everything between agents that is not bytes of a transfer is a session message (wire/session.h), sent in
// order by the session link over whichever path carries control.
//
// Thread rule: confined to the lane.

#include <cstddef>
#include <cstdint>

#include <hawser/agent.h>

#include "agent/engine/arrival_desk.h"
#include "agent/engine/arrive_sender.h"
#include "agent/engine/at_once.h"
#include "agent/engine/better_paths.h"
#include "agent/engine/card_exchange.h"
#include "agent/engine/channel_book.h"
#include "agent/engine/chunk_dispatcher.h"
#include "agent/engine/connector.h"
#include "agent/engine/fences.h"
#include "agent/engine/graveyard.h"
#include "agent/engine/greeter.h"
#include "agent/engine/held_transfers.h"
#include "agent/engine/link_memory.h"
#include "agent/engine/message_desk.h"
#include "agent/engine/news.h"
#include "agent/engine/open_backend.h"
#include "agent/engine/path_index.h"
#include "agent/engine/path_log.h"
#include "agent/engine/path_opener.h"
#include "agent/engine/ports.h"
#include "agent/engine/reach.h"
#include "agent/engine/region_bindings.h"
#include "agent/engine/router.h"
#include "agent/engine/service_carrier.h"
#include "agent/engine/service_table.h"
#include "agent/engine/session_link.h"
#include "agent/engine/session_reader.h"
#include "agent/engine/session_table.h"
#include "agent/engine/strangers.h"
#include "agent/engine/surroundings.h"
#include "agent/engine/transfer_table.h"
#include "agent/engine/transfer_times.h"
#include "agent/peer_core.h"
#include "agent/session.h"
#include "base/rng.h"

namespace hawser::agent {

class Engine final : private PortListener, private SessionListener {
 public:
  /// What it works with; all of it outlives the engine.
  struct Uses {
    const AgentOptions& options;
    const backend::Identity& identity;  ///< May be filled in later, before the first path.
    base::Logger& log;
    Inbox& inbox;
    backend::RegionTable& regions;
    SlotPool& slots;
    const Clock& clock;
    PeerRegister& peers;
    Cards& cards;
    Keys& keys;
    Waiters& waiters;
    const BackendReports& reports;
    base::Rng rng;
  };
  explicit Engine(const Uses& uses);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  // The members that others call.
  Ports& ports() { return ports_; }
  SessionTable& sessions() { return sessions_; }
  const SessionTable& sessions() const { return sessions_; }
  ServiceTable& services() { return services_; }
  /// One that comes when there may be sessions: peers learn of its channels.
  void add_service(Service& service);
  Carrier& carrier() { return carrier_; }
  TransferTable& transfers() { return transfers_; }
  const TransferTable& transfers() const { return transfers_; }
  ChunkDispatcher& dispatcher() { return dispatcher_; }
  AtOnce& at_once() { return at_once_; }
  const Reach& reach() const { return reach_; }
  Router& router() { return router_; }
  Connector& connector() { return connector_; }
  BetterPaths& better() { return better_; }
  Strangers& strangers() { return strangers_; }
  MessageDesk& messages() { return messages_; }
  ArrivalDesk& arrivals() { return arrivals_; }
  CardExchange& exchange() { return exchange_; }
  LinkMemory& link_memory() { return link_memory_; }
  RegionBindings& bindings() { return bindings_; }
  Graveyard& graveyard() { return graveyard_; }
  base::Rng& rng() { return rng_; }

  // The turn.
  std::size_t turn(Instant now);
  /// Instead of a turn: a glance at the ports, at that alone where the last message came from if the others were looked
  /// at just now. False: there may be something to do, or it is time for a whole turn.
  bool nothing_new(Instant now);
  Instant next_deadline() const;
  /// False: there is work.
  bool prepare_sleep();

  /// Tells of the transfers of each session, and of every service, who waits for whom.
  void describe(const Visitor& visitor) const;
  std::uint64_t peers_up() const;
  /// Whether every peer that is not down has acknowledged all that it was sent.
  std::vector<const Session*> behind() const;

  // Closing.
  void begin_close(Instant now);
  bool is_closing() const { return sessions_.is_closing(); }
  bool closed() const;
  /// Ports and backends are destroyed; what is still in flight ends.
  void shut_down(Instant now);

 private:
  // PortListener
  void on_event(std::size_t backend, const backend::PortEvent& event, Instant now) override;
  // SessionListener
  void on_path_up(Session& session, PathEntry& entry) override { greeter_.greet(session, entry); }
  void on_failed(Session& session, const Status& told, Instant now) override;
  void on_paths_gone(Session& session) override;

  std::size_t expire(Instant now);
  std::size_t serve_sessions(std::size_t work, Instant now);
  std::size_t pump(Session& session, Instant now);
  std::size_t run_timers(Instant now);
  std::size_t on_timer(Session& session, SessionTimer which, Instant now);

  const Uses uses_;
  base::Rng rng_;
  SessionTimers timers_;
  Instant turned_;  ///< The last turn.

  // Each names only those before it.
  Ports ports_;
  PathIndex paths_;
  News news_;
  ChannelBook channels_;
  ServiceTable services_;
  SessionTable sessions_;
  PathLog path_log_;
  Reach reach_;
  PathOpener opener_;
  Fences fences_;
  BetterPaths better_;
  Strangers strangers_;
  Connector connector_;
  Graveyard graveyard_;
  LinkMemory link_memory_;
  RegionBindings bindings_;
  Router router_;
  SessionLink link_;
  MessageDesk messages_;
  ArrivalDesk arrivals_;
  CardExchange exchange_;
  Greeter greeter_;
  SessionReader reader_;
  LentMemory lent_;
  LentWrites writes_;
  ServiceCarrier carrier_;
  HeldTransfers held_;
  ArriveSender arrives_;
  TransferTimes times_;
  TransferTable transfers_;
  AtOnce at_once_;
  ChunkDispatcher dispatcher_;
};

}  // namespace hawser::agent
