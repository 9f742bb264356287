// Paths and the life of sessions in the engine: opened at first use, greeted, lost, opened again, given up.

#include <algorithm>

#include "agent/core.h"
#include "agent/engine.h"
#include "agent/verdict.h"
#include "backend/death.h"
#include "base/format.h"
#include "base/planted.h"
#include "base/shown.h"

namespace hawser::agent {
namespace {

using proto::SessionAction;
using proto::SessionEvent;
using proto::SessionState;

SessionEvent event_of(const Status& why) {
  if (why.code() == Code::kDenied || why.code() == Code::kUnsupported) return SessionEvent::kDenied;
  if (why.code() == Code::kCorrupt) return SessionEvent::kDenied;
  if (why.scope() == Scope::kPeer) return SessionEvent::kPeerDead;
  return SessionEvent::kPathLost;
}

}  // namespace

void Engine::want(Session& session, Instant now) {
  if (session.peer->state.load(std::memory_order_relaxed) == PeerState::kDown) return;
  if (session.machine.state() == SessionState::kKnown) feed(session, SessionEvent::kWant, Status(), now);
}

void Engine::feed(Session& session, SessionEvent event, const Status& cause, Instant now) {
  if (event == SessionEvent::kPeerDead && backend::is_certain_death(cause)) core_.note_death(*session.peer, cause);
  if (event == SessionEvent::kPathUp) core_.note_life(*session.peer);
  for (const SessionAction action : session.machine.on(event)) act(session, action, cause, now);
  const PeerState state = session.machine.public_state();
  session.peer->state.store(state, std::memory_order_release);
  const bool is_live = state == PeerState::kUp || state == PeerState::kSuspect;
  if (!session.peer->is_self) core_.guard->note_session(session.peer->incarnation, session.peer->name, is_live);
}

void Engine::act(Session& session, SessionAction action, const Status& cause, Instant now) {
  switch (action) {
    case SessionAction::kNone:
      break;
    case SessionAction::kArmDeadline:
      session.connect_deadline = now + core_.options.peer_timeout;
      session.backoff.emplace(pauses_before_opening(session), session.connect_deadline);
      session.tried = session.fruitless;
      timers_.set(session.alarms[SessionTimer::kConnect], session.connect_deadline);
      break;
    case SessionAction::kDisarm:
      session.connect_deadline = Instant::max();
      timers_.clear(session.alarms[SessionTimer::kConnect]);
      timers_.clear(session.alarms[SessionTimer::kRetry]);
      session.tried = session.fruitless;
      break;
    case SessionAction::kOpenPath:
      session.tried = session.fruitless;
      if (!open_next_path(session, now)) give_verdict(session, now);
      break;
    case SessionAction::kStartBackoff:
      if (const auto at = session.backoff->next(now, rng_)) {
        timers_.set(session.alarms[SessionTimer::kRetry], std::min(*at, dead_if_refused_at(session)));
      } else {
        feed(session, SessionEvent::kDeadline, status_at_deadline(session.last_failure, session.machine.was_up()), now);
      }
      break;
    case SessionAction::kGreet:
      break;  // adopt() greets every path, the first one too.
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
      fail_transfers(session, cause, now);
      break;
    case SessionAction::kSendBye:
      if (session.control_serial != 0) {
        std::array<std::byte, wire::kHeadMax> buffer;
        constexpr std::string_view kText = "closed";
        const wire::Bye bye{.code = Code::kDisconnected, .text = kText};
        send_plain(session, wire::encode(bye, buffer), std::as_bytes(std::span(kText.data(), kText.size())));
      }
      break;
    case SessionAction::kReleasePaths:
      release_paths(session);
      break;
    case SessionAction::kReportUnreached:
      report_unreached(session, cause);
      break;
  }
}

bool Engine::open_next_path(Session& session, Instant now) {
  session.tried.resize(backends_.size(), false);
  for (const std::size_t i : candidates(*session.peer)) {
    if (session.tried[i]) continue;
    session.tried[i] = true;
    if (session.has_path_by(i)) continue;
    const base::Id128& lost = session.lost.empty() ? session.last_session : session.lost.front().session;
    if (open_path(session, i, session.connect_deadline, now, lost)) return true;
  }
  return false;
}

/// False: session.failed tells why.
bool Engine::open_path(Session& session, std::size_t backend, Instant deadline, Instant now,
                       const base::Id128& supersedes) {
  const std::string address = address_of(*session.peer, backend);
  AdmissionTicket ticket;
  {
    const base::MutexLock lock(session.peer->mutex);
    ticket = session.peer->ticket;
  }
  part();  // The peer is to hear of the old ones first.
  const Result<backend::Path*> path = backends_[backend].port->open_path({.peer = session.peer->name,
                                                                          .incarnation = session.peer->incarnation,
                                                                          .address = address,
                                                                          .supersedes = supersedes,
                                                                          .deadline = deadline,
                                                                          .admission = ticket.admission,
                                                                          .public_key = ticket.public_key},
                                                                         now);
  if (!path) {
    session.failed[backend] = path.error();
    session.refused.erase(backend);
    return false;
  }
  PathEntry entry;
  entry.backend = backend;
  entry.path = *path;
  entry.serial = next_serial_++;
  entry.supersedes = supersedes;
  session.paths.push_back(std::move(entry));
  by_path_[*path] = &session;
  last_path_ = nullptr;
  return true;
}

void Engine::on_path_up(std::size_t backend, const backend::PortEvent& event, Instant now) {
  if (closing_ || event.peer == nullptr || is_released(event.path)) return;
  for (Stranger& stranger : strangers_) {
    if (stranger.path != event.path) continue;
    stranger.path = nullptr;
    const Result<std::shared_ptr<PeerCore>> met = core_.meet(*event.peer);
    if (!met) {
      stranger.failure = met.error();
      release(backend, event.path);
      return;
    }
    stranger.peer = *met;
    adopt(session(stranger.peer), backend, event, now);
    return;
  }
  if (Session* known = session_of(event.path); known != nullptr) {
    adopt(*known, backend, event, now);
    return;
  }
  Result<std::shared_ptr<PeerCore>> peer = core_.meet(*event.peer);
  if (peer && (*peer)->state.load(std::memory_order_relaxed) == PeerState::kDown) {
    // That session is over. Whether the peer means it or a new one, its Welcome will tell.
    core_.forget(**peer);
    peer = core_.meet(*event.peer);
  }
  if (!peer) {
    turn_away(backend, event, peer.error(), now);
    return;
  }
  if (!speaks_for(**peer, *event.peer, now)) {
    release(backend, event.path);
    return;
  }
  adopt(session(*peer), backend, event, now);
}

/// The peer lost that path and goes on by another backend, whose port does not know it: what is still under way on it
/// must not land after the peer has moved on, so it ends before the new path is greeted.
void Engine::give_up_superseded(Session& session, std::size_t backend, const backend::PortEvent& event) {
  if (event.supersedes.is_zero()) return;
  for (PathEntry& entry : session.paths) {
    if (!entry.up || entry.session != event.supersedes || entry.backend == backend) continue;
    entry.path->give_up(Status(Code::kDisconnected, session.peer->name + " opened a path of another backend instead")
                            .with_scope(Scope::kPath)
                            .with_peer(session.peer->name));
  }
}

void Engine::adopt(Session& session, std::size_t backend, const backend::PortEvent& event, Instant now) {
  give_up_superseded(session, backend, event);
  PathEntry* entry = session.find(event.path);
  if (entry == nullptr) {
    PathEntry fresh;
    fresh.backend = backend;
    fresh.path = event.path;
    fresh.serial = next_serial_++;
    session.paths.push_back(std::move(fresh));
    entry = &session.paths.back();
    by_path_[event.path] = &session;
    last_path_ = nullptr;
  }
  entry->up = true;
  entry->session = event.session;
  tell_of_path(LogLevel::kInfo, session, backend, "is up", now);
  on_fenced(session, event.supersedes);  // Who opens a path in place of another has lost it.
  // No path comes up where there is none: hellos agreed on it.
  const wire::Versions ours{core_.identity.version_min, core_.identity.version_max};
  const wire::Versions theirs{event.peer->version_min, event.peer->version_max};
  session.wire_version = wire::agree_version(ours, theirs).value_or(0);
  session.failed.erase(backend);
  session.refused.clear();
  session.refused_since = Instant::max();
  set_unreached(session, Status());
  send_welcome(session, *entry);
  feed(session, SessionEvent::kPathUp, Status(), now);
  enlist(session);
}

void Engine::on_path_down(std::size_t backend, const backend::PortEvent& event, Instant now) {
  for (Stranger& stranger : strangers_) {
    if (stranger.path != event.path) continue;
    stranger.failure = event.status;
    stranger.path = nullptr;
    release(backend, event.path);
    ++finalized_;
    return;
  }
  Session* session = session_of(event.path);
  forget_path(event.path);
  if (session == nullptr) return;  // Released meanwhile.
  PathEntry* entry = session->find(event.path);
  const bool was_up = entry->up;
  const bool was_control = entry->serial == session->control_serial;
  if (entry->serial == session->awaited_serial) enlist(*session);  // Whoever waits does so on another one.
  if (was_up) {
    const bool is_broken = event_of(event.status) == SessionEvent::kPathLost;
    const bool goes_on = session->paths.size() > 1;
    tell_of_path(is_broken ? LogLevel::kWarn : LogLevel::kInfo, *session, backend,
                 base::format("ended{}: {}", goes_on ? ", another one goes on" : "", event.status.to_string()), now);
    session->last_session = entry->session;
  }
  if (was_up) on_lost(*session, *entry, now);
  if (was_up) judge_trial(*session, *entry, now);
  session->paths.erase(session->paths.begin() + (entry - session->paths.data()));
  release(backend, event.path);
  session->failed[backend] = event.status;
  session->last_failure = event.status;
  if (event.refused) {
    session->refused.insert(backend);
  } else {
    session->refused.erase(backend);
  }
  if (was_control) {
    // The other paths' greetings are old: what the peer received meanwhile must be asked for again.
    session->control_serial = 0;
    session->peer->is_greeted.store(false, std::memory_order_release);
    for (PathEntry& each : session->paths) {
      // Where it has not greeted yet, it will. One Welcome more of ours would be answered, and that again, for ever.
      if (!each.greeted) continue;
      each.answer_first = each.answer_first || !each.welcome_sent;
      each.greeted = each.welcome_sent = false;
    }
    enlist(*session);
  }
  const bool others = !session->paths.empty();
  if (others) seek_better_later(*session, now);
  if (others && !session->lost.empty() && !session->alarms.is_set(SessionTimer::kFence)) fence_later(*session, now);
  const SessionEvent what = event_of(event.status);
  if (was_up && (what != SessionEvent::kPathLost || !others)) {
    feed(*session, what, event.status, now);
  } else if (!others && !open_next_path(*session, now)) {
    give_verdict(*session, now);
  }
}

/// One line a second of what happens to paths of one backend: a peer can cause them at will.
void Engine::tell_of_path(LogLevel level, const Session& session, std::size_t backend, std::string_view what,
                          Instant now) {
  if (!core_.log.enabled(level) || closing_) return;
  const auto kind = static_cast<std::uint64_t>(backend) * 2 + (level == LogLevel::kWarn ? 1 : 0);
  if (const auto held_back = path_gate_.pass_kind(kind, now)) {
    core_.log.write(level, "{}: the path to {} over {} {}{}", core_.identity.name, base::shown(session.peer->name),
                    backends_[backend].name, what, base::LineGate::more(*held_back));
  }
}

/// The first greeted path in the agent's order of preference, unless one carries control already.
void Engine::choose_control(Session& session, Instant now) {
  if (session.control() != nullptr) return;
  PathEntry* best = nullptr;
  for (PathEntry& entry : session.paths) {
    if (entry.up && entry.greeted && entry.welcome_sent && (best == nullptr || entry.backend < best->backend))
      best = &entry;
  }
  if (best == nullptr) return;
  const bool lossless = backends_[best->backend].traits->lossless;
  if (Status replayed = session.link_out.replay_from(best->peer_received); !replayed.ok()) {
    break_path(session, replayed, now);
    return;
  }
  for (Service* const service : services_) service->on_control(session);
  session.control_serial = best->serial;
  session.peer->is_greeted.store(true, std::memory_order_release);
  session.link_out.set_lossless(lossless);
  ++finalized_;
  enlist(session);
}

void Engine::break_path(Session& session, const Status& cause, Instant now) {
  // Strangers can cause such lines at will.
  if (const auto held_back = break_gate_.pass_kind(static_cast<std::uint64_t>(cause.code()), now)) {
    HAWSER_LOG(core_.log, kWarn, "{}: dropping {}: {}{}", core_.identity.name, session.peer->name, cause.to_string(),
               base::LineGate::more(*held_back));
  }
  feed(session, SessionEvent::kDenied, cause.with_scope(Scope::kPeer), now);
}

bool Engine::is_released(const backend::Path* path) const {
  const auto is_it = [path](const auto& each) { return each.second == path; };
  return std::any_of(to_release_.begin(), to_release_.end(), is_it) ||
         std::any_of(parting_.begin(), parting_.end(), is_it);
}

void Engine::release(std::size_t backend, backend::Path* path) {
  if (parts_later_) {
    parting_.emplace_back(backend, path);
    return;
  }
  to_release_.emplace_back(backend, path);
  if (!in_events_) release_now();
}

/// Not while events are being read: a new path at the address of a released one would get its events.
void Engine::release_now() {
  for (const auto& [backend, path] : to_release_) backends_[backend].port->release_path(path);
  to_release_.clear();
}

void Engine::part() {
  if (parting_.empty() || in_events_) return;
  for (const auto& [backend, path] : parting_) backends_[backend].port->release_path(path);
  parting_.clear();
}

void Engine::release_paths(Session& session) {
  for (PathEntry& entry : session.paths) {
    forget_path(entry.path);
    release(entry.backend, entry.path);
  }
  session.paths.clear();
  session.lost.clear();
  timers_.clear(session.alarms[SessionTimer::kFence]);
  session.control_serial = 0;
  session.arrivals.clear([](std::uint64_t) {});
  session.waiting.clear();
  session.channels.clear();
  session.peer->channels.clear();
  session.unsent.clear();
  session.peer->is_greeted.store(false, std::memory_order_release);
  session.card_in.reset();
  session.card_teller.cut();
  // A released path ended its chunks without events.
  const Instant now = core_.now();
  for (Slot& slot : session.in_flight) {
    if (!slot.ending || base::planted(base::Planted::kCompletionLost)) continue;
    end_quiet(slot, now);
  }
}

void Engine::bury_soon(Session& session) {
  // One that was made for a peer that was down already goes down itself, too.
  if (std::ranges::find(gone_, &session) == gone_.end()) gone_.push_back(&session);
}

/// Forgets peers that are down, so that joins and leaves leave nothing behind. A handle keeps its name and state.
void Engine::bury(Instant now) {
  (void)now;
  std::erase_if(gone_, [this](Session* session) {
    if (session->slots > 0 || !session->paths.empty()) return false;
    std::erase(sessions_, session);
    std::erase(work_, session);
    std::erase(blocked_, session);
    last_path_ = nullptr;
    last_session_ = nullptr;
    const std::shared_ptr<PeerCore> peer = session->peer;
    // An agent is never gone for itself: no backend led there, and one that is opened later may.
    if (peer->is_self) {
      peer->state.store(PeerState::kKnown, std::memory_order_release);
    } else {
      core_.forget(*peer);
    }
    core_.past.add(*session);
    clear_alarms(*session);
    peer->session.reset();
    return true;
  });
  if (blocked_.empty()) blocked_until_ = Instant::max();  // Or a lane without work would look for it for ever.
}

void Engine::invalidate(Session& session, const Status& cause, Instant now) {
  parts_later_ = session.slots == 0;
  feed(session, SessionEvent::kInvalidate, cause, now);
  parts_later_ = false;
  if (session.slots == 0) core_.forget(*session.peer);  // Buried later, but it may be met again at once.
}

namespace {

/// Whether a path may be handed this memory. Regions of files and of peers' hosts are the path's own to refuse.
bool reaches(const backend::Traits& traits, Device device) {
  if (device.kind == DeviceKind::kCuda) return traits.reaches_gpus;
  return device.kind == DeviceKind::kHost || device.kind == DeviceKind::kFile;
}

Status not_reached(const backend::Traits& traits, std::string_view side, Device device) {
  return Status(Code::kUnsupported, std::string(traits.name) + " does not reach " + std::string(side) + " memory (" +
                                        to_string(device) + ")")
      .with_scope(Scope::kPath);
}

/// What the backend cannot touch at all is never given to it: its processor would fault on a GPU's address.
void refuse_devices(PathEntry& entry, const backend::Traits& traits, const PlanCore& plan) {
  for (const auto& remote : plan.remotes) {
    if (reaches(traits, remote->device)) continue;
    entry.refused.add({remote->index, remote->generation}, {}, not_reached(traits, "remote", remote->device));
    return;  // One is enough to keep the plan off this path.
  }
  for (const auto& local : plan.locals) {
    const Device device = local->entry->device;
    if (reaches(traits, device)) continue;
    // Together with a remote region that it is really joined with: others are nothing to it.
    for (std::uint32_t chunk = 0; chunk < plan.chunk_count(); ++chunk) {
      if (!plan.touches(chunk, *local)) continue;
      const RemoteRegion& remote = plan.remote_of(chunk);
      entry.refused.add({remote.index, remote.generation}, {{local->entry->index, local->entry->generation}},
                        not_reached(traits, "local", device));
      return;
    }
  }
}

/// As the newest card has it: what a backend says of a region may change while handles of it are about.
std::string extra_of(PeerCore& peer, const RemoteRegion& region, std::string_view backend) {
  {
    const base::MutexLock lock(peer.mutex);
    const wire::CardRegion* const named = peer.card == nullptr ? nullptr : peer.card->find(region.index);
    if (named != nullptr && named->generation == region.generation && named->key == region.key) {
      return std::string(peer.card->extra(*named, backend));
    }
  }
  for (const auto& [name, bytes] : region.extras) {
    if (name == backend) return bytes;
  }
  return {};
}

}  // namespace

PathEntry* Engine::route(PlanCore& plan, Session& session, Status* why) {
  Route& route = plan.route;
  if (PathEntry* known = route_in_force(route, session)) return known;
  route = Route();
  PathEntry* best = nullptr;
  for (PathEntry& entry : session.paths) {
    if (!entry.agreed || (best != nullptr && entry.backend >= best->backend)) continue;
    refuse_devices(entry, *backends_[entry.backend].traits, plan);
    if (plan.refused_by(entry.refused) == nullptr) best = &entry;
  }
  if (best == nullptr) {
    const bool connecting =
        std::any_of(session.paths.begin(), session.paths.end(), [](const auto& e) { return !e.agreed; });
    const bool any_up = std::any_of(session.paths.begin(), session.paths.end(), [](const auto& e) { return e.agreed; });
    if (any_up && !connecting) {
      // The paths that are up cannot carry these regions: the next backend may.
      session.connect_deadline = core_.now() + core_.options.peer_timeout;
      if (!open_next_path(session, core_.now())) *why = cannot_carry(session, plan);
    }
    return nullptr;
  }
  base::SmallVector<backend::Binding*, 2> bindings;
  for (const auto& region : plan.remotes) {
    const std::string extra = extra_of(*session.peer, *region, backends_[best->backend].name);
    Result<backend::Binding*> binding = best->path->bind({.index = region->index,
                                                          .generation = region->generation,
                                                          .key = region->key,
                                                          .size = region->size,
                                                          .rights = region->rights,
                                                          .device = region->device,
                                                          .extra = extra});
    if (!binding) {
      if (binding.error().code() != Code::kUnsupported) {
        *why = binding.error();
        return nullptr;
      }
      best->refused.add({region->index, region->generation}, {}, binding.error());
      return this->route(plan, session, why);
    }
    session.bound.add(region);
    bindings.push_back(*binding);
  }
  route = {.path = best->path,
           .serial = best->serial,
           .chosen_among = session.paths_agreed,
           .bindings = std::move(bindings)};
  return best;
}

/// Of those that are set meanwhile none comes in this turn.
std::size_t Engine::run_timers(Instant now) {
  std::size_t work = 0;
  for (std::size_t left = timers_.size(); left > 0; --left) {
    SessionAlarm* const alarm = timers_.take(now);
    if (alarm == nullptr) break;
    work += on_timer(*alarm->session, alarm->which, now);
  }
  return work;
}

std::size_t Engine::on_timer(Session& session, SessionTimer which, Instant now) {
  switch (which) {
    case SessionTimer::kRetry:
      session.fruitless.clear();
      feed(session, SessionEvent::kBackoffOver, session.last_failure, now);
      return 1;
    case SessionTimer::kConnect:
      if (session.control_serial != 0) return 0;
      feed(session, SessionEvent::kDeadline,
           Status(Code::kTimedOut, "no path came up within peer_timeout").because(session.last_failure), now);
      return 1;
    case SessionTimer::kBetter:
      return seek_better(session, now);
    case SessionTimer::kLetGo:
      return let_go(session, now);
    case SessionTimer::kFence:
      return fence_lost(session, now);
    case SessionTimer::kCount:
      break;
  }
  return 0;
}

/// The first of them that is open speaks to addresses that people type.
constexpr std::string_view kTypedBackends[] = {"tcp", "quic"};

Result<std::uint64_t> Engine::open_stranger(std::string_view address, std::string_view name,
                                            const AdmissionTicket& ticket, Instant deadline, Instant now) {
  for (const std::string_view backend : kTypedBackends) {
    const auto found = std::ranges::find(backends_, backend, &OpenBackend::name);
    if (found == backends_.end()) continue;
    Result<backend::Path*> path = found->port->open_path({.peer = name,
                                                          .incarnation = {},
                                                          .address = address,
                                                          .supersedes = {},
                                                          .deadline = deadline,
                                                          .admission = ticket.admission,
                                                          .public_key = ticket.public_key},
                                                         now);
    if (!path) return path.error();
    strangers_.push_back({.number = next_stranger_++,
                          .backend = static_cast<std::size_t>(found - backends_.begin()),
                          .path = *path,
                          .name = std::string(name),
                          .peer = {},
                          .failure = {}});
    return strangers_.back().number;
  }
  return Status(Code::kUnsupported, "an address is asked over tcp or quic, and neither is open in this agent");
}

Result<std::shared_ptr<PeerCore>> Engine::take_stranger(std::uint64_t number) {
  for (Stranger& stranger : strangers_) {
    if (stranger.number != number) continue;
    if (!stranger.failure.ok()) return stranger.failure;
    return stranger.peer;
  }
  return Status(Code::kDisconnected, "the agent was closed meanwhile");
}

void Engine::drop_stranger(std::uint64_t number) {
  std::erase_if(strangers_, [&](const Stranger& stranger) {
    if (stranger.number != number) return false;
    if (stranger.path != nullptr) backends_[stranger.backend].port->release_path(stranger.path);
    return true;
  });
}

}  // namespace hawser::agent
