// What becomes of a peer: which backends lead to it, what it means that none does, and who is told.

#include <algorithm>
#include <vector>

#include "agent/core.h"
#include "agent/engine.h"
#include "agent/plan.h"
#include "agent/verdict.h"

namespace hawser::agent {
namespace {

using proto::SessionEvent;

/// Heartbeats during which a peer is refused from elsewhere before it is taken for dead.
constexpr int kRefusedHeartbeats = 3;

}  // namespace

std::string Engine::address_of(PeerCore& peer, std::size_t backend) {
  if (peer.is_self) return backends_[backend].backend->address();
  const base::MutexLock lock(peer.mutex);
  const std::string* address = peer.card ? peer.card->address_of(backends_[backend].name) : nullptr;
  return address != nullptr ? *address : std::string();
}

Status Engine::refusal_of(PeerCore& peer, std::size_t backend) {
  const OpenBackend& open = backends_[backend];
  if (open.traits->self_only && !peer.is_self) {
    return Status(Code::kUnsupported, open.name + " reaches this agent only");
  }
  const std::string address = address_of(peer, backend);
  if (address.empty()) {
    return Status(Code::kUnsupported, "no address for backend " + open.name + " is known of " + peer.name);
  }
  return open.backend->reachable(address);
}

std::vector<std::size_t> Engine::candidates(PeerCore& peer, std::vector<Status>* why) {
  std::vector<std::size_t> usable;
  if (why != nullptr) why->assign(backends_.size(), Status());
  for (std::size_t i = 0; i < backends_.size(); ++i) {
    const Status refusal = refusal_of(peer, i);
    if (refusal.ok()) usable.push_back(i);
    if (why != nullptr) (*why)[i] = refusal;
  }
  return usable;
}

void Engine::set_state(Session& session, PeerState state, const Status& cause, PeerEvent::Kind kind) {
  if (state == PeerState::kDown) {
    const base::MutexLock lock(session.peer->mutex);
    session.peer->down_cause = cause;
  }
  const PeerState before = session.peer->state.exchange(state, std::memory_order_acq_rel);
  if (state == PeerState::kSuspect && before == state) return;  // Refused again.
  if (state == PeerState::kDown) bury_soon(session);
  ++finalized_;  // Waiters look at peers' states too.
  core_.inbox.push_event({.kind = kind, .peer = Peer(session.peer), .cause = cause});
  core_.hint(CompletionKind::kPeer, 0);
}

/// Of the backends that have no path to the peer: why.
std::vector<Attempt> Engine::attempts_of(Session& session) {
  std::vector<Status> why;
  static_cast<void>(candidates(*session.peer, &why));
  std::vector<Attempt> attempts;
  for (std::size_t i = 0; i < why.size(); ++i) {
    const auto failed = session.failed.find(i);
    const bool is_tried = why[i].ok() && failed != session.failed.end();
    if ((why[i].ok() && !is_tried) || session.has_path_by(i)) continue;
    attempts.push_back({.backend = backends_[i].name,
                        .why = is_tried ? failed->second : why[i],
                        .leads_nowhere = !is_tried,
                        .refused = is_tried && session.refused.contains(i)});
  }
  return attempts;
}

/// Paths are up, and none of them can carry the plan.
Status Engine::cannot_carry(Session& session, const PlanCore& plan) {
  Status why(Code::kUnsupported, "no path to " + session.peer->name + " can carry this plan");
  for (const PathEntry& entry : session.paths) {
    const auto* refusal = plan.refused_by(entry.refused);
    if (refusal != nullptr)
      why = why.because(reason_of({.backend = backends_[entry.backend].name, .why = refusal->why}));
  }
  for (const Attempt& attempt : attempts_of(session)) why = why.because(reason_of(attempt));
  return why.with_peer(session.peer->name);
}

/// No path could be opened. One that was up before is connected again until its time is over: its listener may be
/// opened anew.
void Engine::give_verdict(Session& session, Instant now) {
  Verdict verdict = judge_attempts(session.peer->name, attempts_of(session));
  if (verdict.event == SessionEvent::kUnreachable && session.machine.was_up()) verdict.event = SessionEvent::kPathLost;
  // The last path that was up went while another one was on its way: connecting begins only now.
  const auto state = session.machine.state();
  const bool is_up = state == proto::SessionState::kUp || state == proto::SessionState::kSuspect;
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

Instant Engine::dead_if_refused_at(const Session& session) const {
  if (session.refused_since == Instant::max()) return Instant::max();
  return session.refused_since + core_.options.heartbeat * kRefusedHeartbeats;
}

/// Of a session that ended, or that no path leads to for now.
Status Engine::status_of_failed(const Session& session, const Status& cause) const {
  return session.machine.state() == proto::SessionState::kKnown ? cause : Core::gone_status(*session.peer, cause);
}

void Engine::set_unreached(Session& session, const Status& cause) {
  session.unreached = cause;
  session.peer->is_unreached.store(!cause.ok(), std::memory_order_release);
}

void Engine::report_unreached(Session& session, const Status& cause) {
  set_unreached(session, cause);
  {
    const base::MutexLock lock(session.peer->mutex);
    session.peer->unreached_why = cause;
  }
  session.peer->unreached.fetch_add(1, std::memory_order_release);
  ++finalized_;  // Waiters look at it.
}

}  // namespace hawser::agent
