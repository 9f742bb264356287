#pragma once

// Connector: the life of sessions and their paths: opened at first use, adopted when they come up, lost, opened again,
// given up. What a session does next is proto/peer_state.h's to say; this does it.
//
// Thread rule: confined to the lane.

#include <cstddef>
#include <string_view>

#include <hawser/agent.h>
#include <hawser/status.h>
#include <hawser/time.h>

#include "agent/engine/better_paths.h"
#include "agent/engine/fences.h"
#include "agent/engine/news.h"
#include "agent/engine/path_index.h"
#include "agent/engine/path_log.h"
#include "agent/engine/path_opener.h"
#include "agent/engine/ports.h"
#include "agent/engine/reach.h"
#include "agent/engine/session_table.h"
#include "agent/engine/strangers.h"
#include "agent/engine/surroundings.h"
#include "agent/session.h"
#include "base/rng.h"
#include "proto/backoff.h"

namespace hawser::agent {

/// The members above the connector hear of sessions by this.
class SessionListener {
 public:
  /// A path is up: the peer is to be greeted on it.
  virtual void on_path_up(Session& session, PathEntry& entry) = 0;
  /// The peer is down, or no path leads to it: transfers and services of the session end with `told`.
  virtual void on_failed(Session& session, const Status& told, Instant now) = 0;
  /// All its paths were released, and what hung on them is void.
  virtual void on_paths_gone(Session& session) = 0;

 protected:
  ~SessionListener() = default;
};

class Connector {
 public:
  /// What it works with; all of it outlives it.
  struct Uses {
    SessionTable& sessions;
    Ports& ports;
    PathIndex& paths;
    const Reach& reach;
    PathOpener& opener;
    Fences& fences;
    BetterPaths& better;
    Strangers& strangers;
    SessionTimers& timers;
    PeerRegister& peers;
    News& news;
    PathLog& log;
    base::Rng& rng;
    const AgentOptions& options;        ///< Its times.
    const backend::Identity& identity;  ///< Its wire versions.
    SessionListener& listener;
  };
  explicit Connector(const Uses& uses) : uses_(uses) {}

  /// Opens paths to the peer where nobody has asked for any yet.
  void want(Session& session, Instant now) {
    if (session.peer->state.load(std::memory_order_relaxed) == PeerState::kDown) return;
    if (session.machine.state() == proto::SessionState::kKnown) {
      feed(session, proto::SessionEvent::kWant, Status(), now);
    }
  }
  void feed(Session& session, proto::SessionEvent event, const Status& cause, Instant now);
  /// The peer broke the rules, or cannot be gone on with: its session ends.
  void drop(Session& session, const Status& cause, Instant now);
  /// The user ends the session. Where nothing of it is in flight, its paths go with the lane's next turn.
  void invalidate(Session& session, const Status& cause, Instant now);
  /// What waits for a pause to be over is tried in this turn; later pauses begin short again.
  void reconnect(Session& session, Instant now);
  /// Opens the next backend that was not tried since the last success. False: there is none.
  bool open_next(Session& session, Instant now);
  /// As `open_next`, for plans that the paths which are up cannot carry.
  bool open_next_for_plan(Session& session, Instant now);
  /// Why no path led to the peer; good: one may.
  void set_unreached(Session& session, const Status& cause);

  void on_path_up(std::size_t backend, const backend::PortEvent& event, Instant now);
  void on_path_down(std::size_t backend, const backend::PortEvent& event, Instant now);
  /// The peer misses its heartbeats on a path, or was heard again there.
  void on_path_silence(const backend::PortEvent& event, Instant now);
  /// SessionTimer::kRetry.
  void on_pause_over(Session& session, Instant now);
  /// SessionTimer::kConnect. Returns how much was done.
  std::size_t on_connect_deadline(Session& session, Instant now);

 private:
  void act(Session& session, proto::SessionAction action, const Status& cause, Instant now);
  void arm_deadline(Session& session, Instant now);
  void start_backoff(Session& session, Instant now);
  void say_goodbye(Session& session);
  void adopt(Session& session, std::size_t backend, const backend::PortEvent& event, Instant now);
  void adopt_stranger(std::size_t backend, const backend::PortEvent& event, Instant now);
  void give_up_superseded(Session& session, std::size_t backend, const backend::PortEvent& event);
  void note_lost(Session& session, PathEntry& entry, std::size_t backend, const backend::PortEvent& event, Instant now);
  void lose_control(Session& session);
  static proto::SessionEvent event_of_loss(const Session& session, const PathEntry& lost, const Status& why);
  void note_silence(Session& session, const Status& why, Instant now);
  void open_beside(Session& session, Instant now);
  static void give_up_silent(Session& session, const PathEntry& fresh);
  static void ask_others(Session& session, const PathEntry& silent, bool begins, Instant now);
  static void keep_acknowledged(Session& session);
  void release_paths(Session& session);
  void set_state(Session& session, PeerState state, const Status& cause, PeerEvent::Kind kind);
  void give_verdict(Session& session, Instant now);
  Instant dead_if_refused_at(const Session& session) const;
  Status told_of(const Session& session, const Status& cause) const;
  void report_unreached(Session& session, const Status& cause);
  void log(LogLevel level, const Session& session, std::size_t backend, std::string_view what, Instant now);

  const Uses uses_;
};

}  // namespace hawser::agent
