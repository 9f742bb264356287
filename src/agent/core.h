#pragma once

// The core of an agent: it owns the members that all handles of the agent share, makes them known to each other, and
// opens and ends them in the right order. What a member does stands in the member's header; docs/architecture.md has a
// table of them.
//
// Locks, and their order: lane_access.h.
//
// Thread rule: thread-safe but for what is said to be under the lane's lock.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hawser/agent.h>

#include "agent/address_finder.h"
#include "agent/arena_book.h"
#include "agent/atomic_service.h"
#include "agent/backend_opener.h"
#include "agent/backend_reports.h"
#include "agent/card_intake.h"
#include "agent/counter_snapshot.h"
#include "agent/directory_finder.h"
#include "agent/engine.h"
#include "agent/engine_host.h"
#include "agent/grant_book.h"
#include "agent/grant_ends.h"
#include "agent/grant_maker.h"
#include "agent/grant_service.h"
#include "agent/inbox.h"
#include "agent/key_pool.h"
#include "agent/lane.h"
#include "agent/lane_access.h"
#include "agent/life.h"
#include "agent/open.h"
#include "agent/own_card.h"
#include "agent/past_flow.h"
#include "agent/peer_book.h"
#include "agent/peer_core.h"
#include "agent/peer_finder.h"
#include "agent/peer_status.h"
#include "agent/presence.h"
#include "agent/queue_list.h"
#include "agent/region_book.h"
#include "agent/region_closer.h"
#include "agent/region_maker.h"
#include "agent/region_names.h"
#include "agent/region_registrar.h"
#include "agent/revocation_watch.h"
#include "agent/shutdown.h"
#include "agent/slot.h"
#include "agent/status_teller.h"
#include "backend/backend.h"
#include "base/log.h"
#include "identity/authenticator.h"
#include "metrics/server.h"
#include "tls/key_pair.h"

namespace hawser::agent {

class Core : public std::enable_shared_from_this<Core> {
  /// What members ask of each other and of the engine, each by an interface of its own.
  class Rest;

 public:
  static Result<std::shared_ptr<Core>> open(AgentOptions options, std::vector<backend::Factory> factories, Hooks hooks);
  ~Core();

  const AgentOptions options;
  const Hooks hooks;
  const std::shared_ptr<const Clock> clock;
  std::optional<tls::KeyPair> keys;  ///< Of this incarnation; there once the core is open.
  /// The agent's identity by an authority; null: it has none. Set once, when the core opens.
  std::shared_ptr<identity::Authenticator> authenticator;
  backend::Identity identity;  ///< `driven` changes under the lane's lock.
  base::Logger log;
  const std::shared_ptr<backend::PeerGuard> peer_guard;  ///< Under the lane's lock.
  Life life;

  // What moves bytes.
  backend::RegionTable regions;
  SlotPool* const slots;
  Inbox inbox;
  Lane lane;
  EngineHost host{*this};
  Engine engine HAWSER_GUARDED_BY(in_lane);
  AtomicService atomics HAWSER_GUARDED_BY(in_lane){engine.carrier(), regions, inbox};
  std::shared_ptr<Service> tenant;  ///< A service of the layer above (Hooks::tenant). Null: there is none.
  Presence presence;
  StatusTeller status_teller{*this};
  metrics::Entry metrics;  ///< Where AgentOptions::metrics asked for one.

  // Books: each keeps one kind of things, under a lock of its own.
  PastFlow past HAWSER_GUARDED_BY(in_lane);
  PeerBook peer_book{options.name, options.limits.peers};
  RegionBook region_book;
  RegionNames region_names;
  ArenaBook arenas;
  GrantBook grants{options.limits.grants};  ///< Under the lane's lock.
  OwnCard own_card;
  BackendReports backend_reports;
  QueueList queues;

 private:
  const std::unique_ptr<Rest> rest_;

 public:
  // What works on them.
  BackendOpener backend_opener;
  RegionCloser region_closer;
  RegionRegistrar region_registrar;
  RegionMaker region_maker;
  GrantEnds grant_ends{lane, regions, grants, region_closer};
  GrantService grant_service{engine.carrier(), grants, grant_ends};
  GrantMaker grant_maker;
  std::unique_ptr<RevocationWatch> revocation_watch;  ///< Null: without a directory or an identity.
  CardIntake card_intake;
  DirectoryFinder directory_finder;
  AddressFinder address_finder;
  PeerFinder peer_finder;
  Shutdown shutdown;

  Instant now() const { return clock->now(); }
  // See Life.
  Status not_forked(std::string_view call) const { return life.not_forked(call); }
  Status not_inline(std::string_view call) const { return life.not_inline(call); }
  Status usable(std::string_view call) const { return life.usable(call); }
  bool disowned() const { return life.disowned(); }
  bool is_closed() const { return life.is_closed(); }

  /// What hellos and cards say from now on of who runs this agent (AgentOptions::driven), for layers above that bring a
  /// thread with them. Peers that greeted it before keep what they heard.
  void say_driven(bool driven) HAWSER_EXCLUDES(in_lane);
  /// Once it is closed, when no turn comes any more: ends what was submitted meanwhile.
  void refuse_what_is_left() HAWSER_REQUIRES(in_lane);
  AgentCounters counters() HAWSER_EXCLUDES(in_lane);
  /// For callers that add the sessions by themselves, some at a time.
  void begin_counters(CounterSnapshot& snapshot) HAWSER_REQUIRES(in_lane);
  AgentCounters finish_counters(CounterSnapshot& snapshot) const;
  /// Only system calls: runs in a forked child.
  void disown_after_fork();

  // Of several members at once.
  /// None in a forked child.
  std::vector<std::shared_ptr<PeerCore>> peers() const;
  /// The same.
  std::vector<BackendReport> reports() const;
  void forget(const PeerCore& peer);
  /// What the backend says of regions has changed. The engine calls this in its turns, and tells sessions by itself.
  void renew_extras(OpenBackend& open);
  /// A region's. Under the lane's lock.
  base::Id128 make_key();

 private:
  Core(AgentOptions its_options, std::vector<backend::Factory> factories, Hooks its_hooks);

  /// Who this incarnation is: its name, its number, when it was born, its secrets.
  Status identify(Instant deadline);
  void watch_revocations();
  /// Sessions and the directory hear of the card's new revision.
  void tell_of_card() HAWSER_REQUIRES(in_lane);

  KeyPool region_keys_ HAWSER_GUARDED_BY(in_lane);
  std::shared_ptr<Core> keep_;  ///< Itself, in a forked child.
};

}  // namespace hawser::agent
