#pragma once

// A session: what an agent keeps of a peer in use. Confined to the lane.

#include <algorithm>
#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hawser/counters.h>

#include "agent/bound_regions.h"
#include "agent/refusals.h"
#include "agent/service.h"
#include "agent/session_timers.h"
#include "agent/slot.h"
#include "agent/unsent_messages.h"
#include "agent/waiting_arrives.h"
#include "backend/backend.h"
#include "base/histogram.h"
#include "base/intrusive_list.h"
#include "plan/cost.h"
#include "proto/arrival.h"
#include "proto/backoff.h"
#include "proto/card_sync.h"
#include "proto/credit.h"
#include "proto/link_set.h"
#include "proto/notify_credit.h"
#include "proto/peer_state.h"
#include "proto/trial.h"

namespace hawser::agent {

struct PeerCore;

/// What good transfers took on a path.
struct PathTimes {
  base::Histogram latency;  ///< Submit to final.
  plan::Health health;      ///< Of those that had the peer's paths to themselves.
};

struct PathEntry {
  std::size_t backend = 0;  ///< In Engine::backends.
  backend::Path* path = nullptr;
  std::uint64_t serial = 0;  ///< Names it for ever.
  base::Id128 session;       ///< Names it at both ends.
  bool up = false;
  bool agreed = false;   ///< A Welcome told that the peer means this session: it may carry transfers.
  bool greeted = false;  ///< The peer's Welcome came on it.
  bool welcome_sent = false;
  bool silent = false;     ///< The peer misses its heartbeats on it.
  bool unsettled = false;  ///< It went down while writes were under way that may still land.
  base::Id128 supersedes;  ///< Opened here: what is dead at the peer once it is up.
  /// The peer greeted anew and waits for an answer, and we greet anew ourselves. One Welcome would be taken for the
  /// answer, and so not be answered: two are sent.
  bool answer_first = false;
  proto::LinkSet::Numbers peer_received = {};  ///< What that Welcome said.
  Refusals refused;                            ///< What this path cannot carry.
  std::uint64_t errors = 0, retries = 0;
  std::uint64_t carried = 0;         ///< Chunks that it ended well, the session's messages that came on it: it works.
  proto::Trial trial;                ///< From when it was agreed upon.
  std::unique_ptr<PathTimes> times;  ///< From the first transfer that was timed on.
};

/// What the peer may send on a channel. What we may send it is PeerCore's, for threads without the lane's lock.
struct ChannelState {
  std::optional<proto::CreditReceiver> in;  ///< Once it was opened here.
  Priority priority = Priority::kRealtime;  ///< In which class the peer's messages come.
  bool credit_owed = false;
};

/// A message that went over a path without loss, and that the peer had not taken when that path was lost.
struct Adrift {
  wire::Place place;
  std::uint32_t channel = 0;
};
/// At most as many as a path holds, for a session goes on only once the peer has all of them.
struct AdriftBook {
  std::vector<Adrift> messages;
  bool is_known = true;  ///< False: others may be adrift, too.
};

struct CardIn {
  std::string bytes;
  std::uint64_t revision = 0;
  std::uint32_t total = 0;
};

/// A path that was lost with writes under way, and is not known to be dead at the peer.
struct LostPath {
  base::Id128 session;
  std::uint64_t serial = 0;  ///< Of the path that is opened in its place; 0: none.
  std::ptrdiff_t tries = 0;
  Instant until;  ///< Then the peer is given up.
};

struct Session {
  Session(std::shared_ptr<PeerCore> its_peer, const proto::NotifyLimits& notify, Inbox& inbox,
          std::span<Service* const> its_services)
      : peer(std::move(its_peer)), notify_in(notify), services(its_services), waiting(inbox), alarms(*this) {}

  const std::shared_ptr<PeerCore> peer;
  proto::SessionMachine machine;

  // Paths, in the order of preference of their backends.
  std::vector<PathEntry> paths;
  std::vector<bool> tried;  ///< Backends tried since the last success.
  /// Backends whose last path came up and was lost before it had worked: others are tried first, or after a pause.
  std::vector<bool> fruitless;
  std::uint32_t trials_failed = 0;       ///< Paths in a row that were lost before they had worked.
  std::map<std::size_t, Status> failed;  ///< By backend: why its last attempt failed. For explain.
  std::set<std::size_t> refused;         ///< Those of them that were refused by a host: see PortEvent::refused.
  Instant refused_since = Instant::max();
  Status unreached;  ///< Why no path led to the peer the last time; good once one did.
  Status last_failure;
  base::Id128 last_session;    ///< To be superseded by the next path.
  std::vector<LostPath> lost;  ///< While there are any, nothing is offered. As many as there were paths at most.
  std::optional<proto::Backoff> fence_backoff;
  Instant connect_deadline = Instant::max();  ///< Of paths that are being opened.
  Instant suspect_until = Instant::max();     ///< It was silent: if no path is left, connecting again ends by then.
  std::optional<proto::Backoff> backoff;
  std::uint64_t paths_agreed = 0;  ///< Counts them: whoever chose a path before the last one chooses again.
  std::optional<proto::Backoff> better_backoff;
  BoundRegions bound;
  std::uint64_t control_serial = 0;  ///< The path that carries our messages; 0: none.
  std::uint64_t awaited_serial = 0;  ///< The path that was told that somebody waits for the peer; 0: none.

  // Messages. Their numbers make sense only between two sessions that mean each other: see wire::Welcome.
  std::uint64_t number = 0;       ///< Of this session; random, not 0.
  std::uint64_t peer_number = 0;  ///< Of the peer's; 0 until its first Welcome.
  std::uint16_t wire_version =
      0;  ///< The highest that both speak; 0 until a path was up. No message depends on it yet.
  proto::LinkSet links;
  proto::NotifyReceiver notify_in;
  bool credit_owed = false;
  std::map<std::uint32_t, ChannelState> channels;
  std::unique_ptr<AdriftBook> adrift;  ///< Mostly null: see engine/unacknowledged.h.
  /// Taken from threads that did not get the lane's lock, and their link had no room: they go before all that is sent
  /// later in it. At most as many as the peer gave credit for.
  UnsentMessages unsent;
  proto::CardAsker card_asker;
  proto::CardTeller card_teller;
  std::optional<CardIn> card_in;

  // Transfers.
  base::IntrusiveList<Slot, &Slot::pending_hook> pending[3];  ///< By priority: have chunks or an Arrive to offer.
  base::IntrusiveList<Slot, &Slot::covered_hook> covered;     ///< Oldest first.
  base::IntrusiveList<Slot, &Slot::session_hook> in_flight;   ///< All that are not final.
  std::uint64_t next_covered = 1;
  std::uint64_t next_plain = 1;
  std::vector<std::uint64_t> cancelled;  ///< Announced and then failed: the peer is told to expect nothing.
  std::vector<std::uint64_t> visible;    ///< Finished, and the peer may not have counted all of it. As many as a path's
                                         ///< immediates under way, each time that one is lost.

  // What services keep of it, each in its own place.
  const std::span<Service* const> services;  ///< Null where there is none yet.
  std::array<std::unique_ptr<Tenancy>, kServicesMax> tenancies;
  bool has_tenancies = false;  ///< Any of them: a session that no service speaks to asks none of them in its turns.

  // As target.
  proto::ArrivalTable arrivals;
  WaitingArrives waiting;

  std::uint32_t slots = 0;        ///< Transfers in flight.
  std::uint32_t lent_chunks = 0;  ///< Under way into memory that the peer has lent.
  FlowCounters flow;
  base::Histogram latency;
  SessionAlarms alarms;
  Instant ack_since = Instant::max();  ///< When the oldest unacknowledged message came.
  bool in_work_list = false;           ///< In the engine's list of sessions to look at, or of those to look at later.
  bool in_blocked_list = false;

  /// Something waits for a word of the peer: a message for its acknowledgement, a service for an answer, a transfer for
  /// its greeting.
  bool awaits_peer() const {
    if (links.keeps_any()) return true;
    const auto does = [this](const Service* each) { return each != nullptr && each->awaits(*this); };
    if (has_tenancies && std::ranges::any_of(services, does)) return true;
    return control_serial == 0 && std::ranges::any_of(pending, [](const auto& list) { return !list.empty(); });
  }
  /// A path was told that somebody does, and nobody does any more.
  bool is_told_in_vain() const { return awaited_serial != 0 && !awaits_peer(); }
  PathEntry* control() {
    for (PathEntry& entry : paths) {
      if (entry.serial == control_serial && control_serial != 0) return &entry;
    }
    return nullptr;
  }
  /// The peer misses no heartbeats: on the path for messages where there is one, else on any that is up.
  bool is_heard() {
    if (const PathEntry* const chosen = control()) return !chosen->silent;
    return std::ranges::any_of(paths, [](const PathEntry& each) { return each.up && !each.silent; });
  }
  /// It misses them. Without a path that is up there are none to miss.
  bool is_silent() { return !is_heard() && std::ranges::any_of(paths, &PathEntry::up); }
  /// The path on which a word of the peer would come.
  PathEntry* awaited() {
    PathEntry* const chosen = control();
    if (chosen != nullptr) return chosen;
    const auto first_up = std::ranges::find(paths, true, &PathEntry::up);
    return first_up == paths.end() ? nullptr : &*first_up;
  }
  bool has_path_by(std::size_t backend) const {
    return std::any_of(paths.begin(), paths.end(), [&](const PathEntry& entry) { return entry.backend == backend; });
  }
  PathEntry* find(std::uint64_t serial) {
    const auto found = std::ranges::find(paths, serial, &PathEntry::serial);
    return found == paths.end() ? nullptr : &*found;
  }
  PathEntry* find(const backend::Path* path) {
    for (PathEntry& entry : paths) {
      if (entry.path == path) return &entry;
    }
    return nullptr;
  }
};

}  // namespace hawser::agent
