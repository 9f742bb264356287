#include "agent/engine/connector.h"

#include <algorithm>
#include <string>
#include <utility>

#include "agent/engine/farewell.h"
#include "agent/engine/path_trials.h"
#include "agent/engine/session_link.h"
#include "agent/engine/unacknowledged.h"
#include "agent/verdict.h"
#include "backend/death.h"
#include "base/format.h"

namespace hawser::agent {
namespace {

using proto::SessionAction;
using proto::SessionEvent;
using proto::SessionState;

/// Heartbeats during which a peer is refused from elsewhere before it is taken for dead.
constexpr int kRefusedHeartbeats = 3;
/// A suspect is connected anew after this part of its time, and again each time that failed.
constexpr int kBesidePart = 4;

bool is_standing(SessionState state) { return state == SessionState::kUp || state == SessionState::kSuspect; }

SessionEvent event_of(const Status& why) {
  if (why.code() == Code::kDenied || why.code() == Code::kUnsupported) return SessionEvent::kDenied;
  if (why.code() == Code::kCorrupt) return SessionEvent::kDenied;
  if (why.scope() == Scope::kPeer) return SessionEvent::kPeerDead;
  return SessionEvent::kPathLost;
}

}  // namespace

void Connector::feed(Session& session, SessionEvent event, const Status& cause, Instant now) {
  if (event == SessionEvent::kPeerDead && backend::is_certain_death(cause)) {
    uses_.peers.note_death(*session.peer, cause);
  }
  if (event == SessionEvent::kPathUp) uses_.peers.note_life(*session.peer);
  if (event == SessionEvent::kPathUp || event == SessionEvent::kHeard) session.suspect_until = Instant::max();
  for (const SessionAction action : session.machine.on(event)) act(session, action, cause, now);
  session.peer->state.store(session.machine.public_state(), std::memory_order_release);
  uses_.peers.note_state(*session.peer, session.machine.public_state());
}

void Connector::act(Session& session, SessionAction action, const Status& cause, Instant now) {
  switch (action) {
    case SessionAction::kNone:
      break;
    case SessionAction::kArmDeadline:
      arm_deadline(session, now);
      break;
    case SessionAction::kDisarm:
      session.connect_deadline = Instant::max();
      uses_.timers.clear(session.alarms[SessionTimer::kConnect]);
      uses_.timers.clear(session.alarms[SessionTimer::kRetry]);
      session.tried = session.fruitless;
      break;
    case SessionAction::kOpenPath:
      session.tried = session.fruitless;
      if (!open_next(session, now)) give_verdict(session, now);
      break;
    case SessionAction::kStartBackoff:
      start_backoff(session, now);
      break;
    case SessionAction::kGreet:
      break;  // adopt() has every path greeted, the first one too.
    case SessionAction::kReportUp:
      set_state(session, PeerState::kUp, cause, PeerEvent::Kind::kUp);
      break;
    case SessionAction::kReportSuspect:
      set_state(session, PeerState::kSuspect, cause, PeerEvent::Kind::kSuspect);
      break;
    case SessionAction::kReportDown:
      set_state(session, PeerState::kDown, cause, PeerEvent::Kind::kDown);
      break;
    case SessionAction::kFailTransfers:
      uses_.listener.on_failed(session, told_of(session, cause), now);
      break;
    case SessionAction::kSendBye:
      say_goodbye(session);
      break;
    case SessionAction::kReleasePaths:
      release_paths(session);
      break;
    case SessionAction::kOpenBeside:
      open_beside(session, now);
      break;
    case SessionAction::kReportUnreached:
      report_unreached(session, cause);
      break;
  }
}

void Connector::arm_deadline(Session& session, Instant now) {
  session.connect_deadline = std::min(now + uses_.options.peer_timeout, session.suspect_until);
  session.backoff.emplace(pauses_before_opening(session, uses_.options.peer_timeout), session.connect_deadline);
  session.tried = session.fruitless;
  uses_.timers.set(session.alarms[SessionTimer::kConnect], session.connect_deadline);
}

void Connector::start_backoff(Session& session, Instant now) {
  if (const auto at = session.backoff->next(now, uses_.rng)) {
    uses_.timers.set(session.alarms[SessionTimer::kRetry], std::min(*at, dead_if_refused_at(session)));
  } else {
    feed(session, SessionEvent::kDeadline, status_at_deadline(session.last_failure, session.machine.was_up()), now);
  }
}

/// Also where the peer has not greeted yet: it may have been heard to come up, and would be sought for peer_timeout.
void Connector::say_goodbye(Session& session) {
  PathEntry* const heard = session.awaited();
  if (heard == nullptr) return;
  HeadArray buffer;
  constexpr std::string_view kText = "closed";
  const wire::Bye bye{.code = Code::kDisconnected, .text = kText};
  static_cast<void>(heard->path->send_last(wire::encode(bye, buffer), std::as_bytes(std::span(kText))));
}

bool Connector::open_next(Session& session, Instant now) {
  session.tried.resize(uses_.ports.size(), false);
  for (const std::size_t i : uses_.reach.candidates(*session.peer)) {
    if (session.tried[i]) continue;
    session.tried[i] = true;
    if (session.has_path_by(i)) continue;
    const base::Id128& lost = session.lost.empty() ? session.last_session : session.lost.front().session;
    if (uses_.opener.open(session, i, session.connect_deadline, now, lost)) return true;
  }
  return false;
}

bool Connector::open_next_for_plan(Session& session, Instant now) {
  session.connect_deadline = now + uses_.options.peer_timeout;
  return open_next(session, now);
}

void Connector::on_path_up(std::size_t backend, const backend::PortEvent& event, Instant now) {
  if (uses_.sessions.is_closing() || event.peer == nullptr || uses_.ports.releases().is_released(event.path)) return;
  if (uses_.strangers.is_theirs(event.path)) return adopt_stranger(backend, event, now);
  if (Session* known = uses_.paths.find(event.path); known != nullptr) return adopt(*known, backend, event, now);
  Result<std::shared_ptr<PeerCore>> peer = uses_.peers.meet(*event.peer);
  if (peer && (*peer)->state.load(std::memory_order_relaxed) == PeerState::kDown) {
    // That session is over. Whether the peer means it or a new one, its Welcome will tell.
    uses_.peers.forget(**peer);
    peer = uses_.peers.meet(*event.peer);
  }
  if (!peer) {
    uses_.peers.note_refusal(backend::Quota::kPeers, event.peer->name, peer.error());
    say_refused(*event.path, peer.error());
    return uses_.ports.releases().release(backend, event.path);
  }
  if (!uses_.peers.speaks_for(**peer, *event.peer)) return uses_.ports.releases().release(backend, event.path);
  adopt(uses_.sessions.of(*peer), backend, event, now);
}

void Connector::adopt_stranger(std::size_t backend, const backend::PortEvent& event, Instant now) {
  Result<std::shared_ptr<PeerCore>> met = uses_.peers.meet(*event.peer);
  if (met && !uses_.peers.speaks_for(**met, *event.peer)) {
    met = Status(Code::kDenied, "who answers there has another key than the card of " + event.peer->name + " tells");
  }
  uses_.strangers.on_up(event.path, met);
  if (!met) return uses_.ports.releases().release(backend, event.path);
  adopt(uses_.sessions.of(*met), backend, event, now);
}

/// The peer lost that path and goes on by another backend, whose port does not know it: what is still under way on it
/// must not land after the peer has moved on, so it ends before the new path is greeted.
void Connector::give_up_superseded(Session& session, std::size_t backend, const backend::PortEvent& event) {
  if (event.supersedes.is_zero()) return;
  for (PathEntry& entry : session.paths) {
    if (!entry.up || entry.session != event.supersedes || entry.backend == backend) continue;
    entry.path->give_up(Status(Code::kDisconnected, session.peer->name + " opened a path of another backend instead")
                            .with_scope(Scope::kPath)
                            .with_peer(session.peer->name));
  }
}

void Connector::adopt(Session& session, std::size_t backend, const backend::PortEvent& event, Instant now) {
  give_up_superseded(session, backend, event);
  PathEntry* entry = session.find(event.path);
  if (entry == nullptr) entry = &uses_.opener.enter(session, backend, event.path);
  entry->up = true;
  entry->session = event.session;
  give_up_silent(session, *entry);
  log(LogLevel::kInfo, session, backend, "is up", now);
  uses_.fences.on_fenced(session, event.supersedes);  // Who opens a path in place of another has lost it.
  // No path comes up where there is none: hellos agreed on it.
  const wire::Versions ours{uses_.identity.version_min, uses_.identity.version_max};
  const wire::Versions theirs{event.peer->version_min, event.peer->version_max};
  session.wire_version = wire::agree_version(ours, theirs).value_or(0);
  session.failed.erase(backend);
  session.refused.clear();
  session.refused_since = Instant::max();
  set_unreached(session, Status());
  uses_.listener.on_path_up(session, *entry);
  feed(session, SessionEvent::kPathUp, Status(), now);
  uses_.sessions.enlist(session);
}

void Connector::on_path_down(std::size_t backend, const backend::PortEvent& event, Instant now) {
  if (uses_.strangers.is_theirs(event.path)) {
    uses_.strangers.on_down(event.path, event.status);
    uses_.ports.releases().release(backend, event.path);
    uses_.news.note();
    return;
  }
  Session* const session = uses_.paths.find(event.path);
  uses_.paths.forget(event.path);
  if (session == nullptr) return;  // Released meanwhile.
  PathEntry* entry = session->find(event.path);
  const bool was_up = entry->up;
  const bool was_control = entry->serial == session->control_serial;
  const SessionEvent what = event_of_loss(*session, *entry, event.status);
  if (entry->silent) ask_others(*session, *entry, false, now);
  if (entry->serial == session->awaited_serial) uses_.sessions.enlist(*session);  // Whoever waits does so on another.
  if (was_up) note_lost(*session, *entry, backend, event, now);
  if (was_control) {
    keep_untaken(*session);
    note_adrift(*session);
  }
  session->paths.erase(session->paths.begin() + (entry - session->paths.data()));
  uses_.ports.releases().release(backend, event.path);
  session->failed[backend] = event.status;
  session->last_failure = event.status;
  if (event.refused) {
    session->refused.insert(backend);
  } else {
    session->refused.erase(backend);
  }
  if (was_control) lose_control(*session);
  const bool others = !session->paths.empty();
  if (others) note_silence(*session, event.status, now);
  if (others) uses_.better.seek_later(*session, now);
  if (others) uses_.fences.fence_soon(*session, now);
  // What an attempt proves while the peer is silent counts at once: its successor may answer in its place.
  const bool is_proven = !was_up && backend::is_certain_death(event.status) && session->is_silent();
  if (is_proven || (was_up && (what != SessionEvent::kPathLost || !others))) {
    feed(*session, what, event.status, now);
  } else if (!others && is_standing(session->machine.state())) {
    feed(*session, SessionEvent::kPathLost, event.status, now);  // The one that was up went while this was on its way.
  } else if (!others && !open_next(*session, now)) {
    give_verdict(*session, now);
  }
}

void Connector::note_lost(Session& session, PathEntry& entry, std::size_t backend, const backend::PortEvent& event,
                          Instant now) {
  const bool is_broken = event_of(event.status) == SessionEvent::kPathLost;
  const bool goes_on = session.paths.size() > 1;
  log(is_broken ? LogLevel::kWarn : LogLevel::kInfo, session, backend,
      base::format("ended{}: {}", goes_on ? ", another one goes on" : "", event.status.to_string()), now);
  session.last_session = entry.session;
  uses_.fences.on_lost(session, entry, now);
  judge_trial(session, entry, uses_.ports.size(), now);
}

/// The peer may have been silent on this path only, because the way that it takes is cut. Then it was heard on another
/// one, which goes on.
SessionEvent Connector::event_of_loss(const Session& session, const PathEntry& lost, const Status& why) {
  const SessionEvent event = event_of(why);
  if (event != SessionEvent::kPeerDead || backend::is_certain_death(why)) return event;
  const auto is_heard = [&](const PathEntry& each) { return each.serial != lost.serial && each.up && !each.silent; };
  return std::ranges::any_of(session.paths, is_heard) ? SessionEvent::kPathLost : event;
}

void Connector::on_path_silence(const backend::PortEvent& event, Instant now) {
  Session* const session = uses_.paths.find(event.path);
  PathEntry* const entry = session == nullptr ? nullptr : session->find(event.path);
  if (entry == nullptr || !entry->up) return;
  const bool begins = event.kind == backend::PortEvent::Kind::kPathSilent;
  entry->silent = begins;
  log(begins ? LogLevel::kWarn : LogLevel::kInfo, *session, entry->backend,
      begins ? base::format("is silent: {}", event.status.to_string()) : "is heard again", now);
  ask_others(*session, *entry, begins, now);
  note_silence(*session, event.status, now);
}

/// Whether the peer is suspect may have changed.
void Connector::note_silence(Session& session, const Status& why, Instant now) {
  const SessionState state = session.machine.state();
  if (session.is_silent() && state == SessionState::kUp) {
    session.suspect_until = now + uses_.options.peer_timeout;
    feed(session, SessionEvent::kMissed, why, now);
    uses_.timers.set(session.alarms[SessionTimer::kRetry], now + uses_.options.peer_timeout / kBesidePart);
  } else if (session.is_heard() && state == SessionState::kSuspect) {
    feed(session, SessionEvent::kHeard, Status(), now);
  }
}

/// After a cut a connection asks again after pauses that double, and a new one at once. Where the peer is stopped it is
/// there when the peer goes on. In memory that both share nothing can be cut.
void Connector::open_beside(Session& session, Instant now) {
  uses_.timers.set(session.alarms[SessionTimer::kRetry], now + uses_.options.peer_timeout / kBesidePart);
  const bool is_opening = std::ranges::any_of(session.paths, [](const PathEntry& each) { return !each.up; });
  if (is_opening || uses_.sessions.is_closing()) return;
  const auto silent = std::ranges::find_if(session.paths, [this](const PathEntry& each) {
    return each.up && each.silent && !uses_.ports.traits(each.backend).same_host_only;
  });
  if (silent == session.paths.end()) return;
  const base::Id128 superseded = silent->session;  // The new path may move the others.
  uses_.opener.open(session, silent->backend, session.suspect_until, now, superseded);
}

/// The peer has dropped the path in whose place this one was opened.
void Connector::give_up_silent(Session& session, const PathEntry& fresh) {
  if (fresh.supersedes.is_zero()) return;
  for (PathEntry& each : session.paths) {
    if (!each.up || each.session != fresh.supersedes) continue;
    each.path->give_up(
        Status(Code::kDisconnected, session.peer->name + " was silent, and answered on another connection")
            .with_scope(Scope::kPath)
            .with_peer(session.peer->name));
  }
}

/// Where one path is silent the others are asked at once and not after the pause of idle ones: they tell whether the
/// peer is, or the way that this path takes.
void Connector::ask_others(Session& session, const PathEntry& silent, bool begins, Instant now) {
  for (PathEntry& each : session.paths) {
    if (each.serial == silent.serial || !each.up || each.serial == session.awaited_serial) continue;
    each.path->set_awaited(begins, now);
  }
}

/// The other paths' greetings are old: what the peer received meanwhile must be asked for again.
void Connector::lose_control(Session& session) {
  session.control_serial = 0;
  session.peer->use().is_greeted.store(false, std::memory_order_release);
  for (PathEntry& each : session.paths) {
    // Where it has not greeted yet, it will. One Welcome more of ours would be answered, and that again, for ever.
    if (!each.greeted) continue;
    each.answer_first = each.answer_first || !each.welcome_sent;
    each.greeted = each.welcome_sent = false;
  }
  uses_.sessions.enlist(session);
}

void Connector::log(LogLevel level, const Session& session, std::size_t backend, std::string_view what, Instant now) {
  if (uses_.sessions.is_closing()) return;
  uses_.log.tell(level, session.peer->name, backend, uses_.ports[backend].name, what, now);
}

void Connector::drop(Session& session, const Status& cause, Instant now) {
  uses_.log.tell_dropped(session.peer->name, cause, now);
  feed(session, SessionEvent::kDenied, cause.with_scope(Scope::kPeer), now);
}

/// Before what the session knows of its messages goes.
void Connector::keep_acknowledged(Session& session) {
  note_adrift(session);
  session.control_serial = 0;
  std::vector<Acknowledged> all = acknowledged_of(session);
  if (all.empty()) return;
  const base::MutexLock lock(session.peer->use().mutex);
  session.peer->use().acknowledged = std::make_unique<std::vector<Acknowledged>>(std::move(all));
}

void Connector::release_paths(Session& session) {
  keep_acknowledged(session);
  for (PathEntry& entry : session.paths) {
    uses_.paths.forget(entry.path);
    uses_.ports.releases().release(entry.backend, entry.path);
  }
  session.paths.clear();
  uses_.fences.forget(session);
  session.peer->use().is_greeted.store(false, std::memory_order_release);
  uses_.listener.on_paths_gone(session);
}

void Connector::invalidate(Session& session, const Status& cause, Instant now) {
  {
    const PathReleases::Later later(uses_.ports.releases(), session.slots == 0 && session.lent_chunks == 0);
    feed(session, SessionEvent::kInvalidate, cause, now);
  }
  if (session.slots == 0) uses_.peers.forget(*session.peer);  // Buried later, but it may be met again at once.
}

void Connector::reconnect(Session& session, Instant now) {
  if (uses_.sessions.is_closing()) return;
  want(session, now);
  SessionAlarm& retry = session.alarms[SessionTimer::kRetry];
  if (retry.hook.is_set()) uses_.timers.set(retry, now);
  uses_.better.seek_now(session, now);
  for (PathEntry& entry : session.paths) entry.path->reconnect(now);
}

void Connector::on_pause_over(Session& session, Instant now) {
  session.fruitless.clear();
  feed(session, SessionEvent::kBackoffOver, session.last_failure, now);
}

std::size_t Connector::on_connect_deadline(Session& session, Instant now) {
  if (session.control_serial != 0) return 0;
  feed(session, SessionEvent::kDeadline,
       Status(Code::kTimedOut, "no path came up within peer_timeout").because(session.last_failure), now);
  return 1;
}

void Connector::set_state(Session& session, PeerState state, const Status& cause, PeerEvent::Kind kind) {
  PeerEvent event{.kind = kind, .peer = Peer(session.peer), .cause = cause, .acknowledged = {}};
  if (state == PeerState::kDown) {
    const base::MutexLock lock(session.peer->use().mutex);
    session.peer->use().down_cause = cause;
    if (session.peer->use().acknowledged != nullptr) event.acknowledged = *session.peer->use().acknowledged;
  }
  const PeerState before = session.peer->state.exchange(state, std::memory_order_acq_rel);
  if (state == PeerState::kSuspect && before == state) return;  // Refused again.
  if (state == PeerState::kDown) uses_.sessions.retire(session);
  uses_.news.peer_event(std::move(event));
}

/// No path could be opened. One that was up before is connected again until its time is over: its listener may be
/// opened anew.
void Connector::give_verdict(Session& session, Instant now) {
  Verdict verdict = judge_attempts(session.peer->name, uses_.reach.attempts_of(session));
  if (verdict.event == SessionEvent::kUnreachable && session.machine.was_up()) verdict.event = SessionEvent::kPathLost;
  // The last path that was up went while another one was on its way: connecting begins only now.
  const bool is_up = is_standing(session.machine.state());
  if (verdict.event != SessionEvent::kRefused) {
    session.refused_since = Instant::max();
  } else if (session.refused_since == Instant::max()) {
    session.refused_since = now;
  } else if (now >= dead_if_refused_at(session)) {
    verdict.event = SessionEvent::kPeerDead;
    verdict.cause = Status(Code::kDisconnected,
                           "every address of '" + session.peer->name + "' has refused connections for three heartbeats")
                        .with_scope(Scope::kPeer)
                        .because(verdict.cause);
  }
  if (is_up && verdict.event == SessionEvent::kRefused) verdict.event = SessionEvent::kPathLost;
  session.last_failure = verdict.cause;
  feed(session, verdict.event, verdict.cause, now);
}

Instant Connector::dead_if_refused_at(const Session& session) const {
  if (session.refused_since == Instant::max()) return Instant::max();
  return session.refused_since + uses_.options.heartbeat * kRefusedHeartbeats;
}

/// The status for transfers and services of a session that has ended, or to whose peer no path leads.
Status Connector::told_of(const Session& session, const Status& cause) const {
  return session.machine.state() == SessionState::kKnown ? cause : uses_.peers.gone_status(*session.peer, cause);
}

void Connector::set_unreached(Session& session, const Status& cause) {
  session.unreached = cause;
  session.peer->use().is_unreached.store(!cause.ok(), std::memory_order_release);
}

void Connector::report_unreached(Session& session, const Status& cause) {
  set_unreached(session, cause);
  {
    const base::MutexLock lock(session.peer->use().mutex);
    session.peer->use().unreached_why = cause;
  }
  session.peer->use().unreached.fetch_add(1, std::memory_order_release);
  uses_.news.note();  // Waiters look at it.
}

}  // namespace hawser::agent
