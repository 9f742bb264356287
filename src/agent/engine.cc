#include "agent/engine.h"

#include <algorithm>
#include <array>
#include <utility>

#include "agent/core.h"

namespace hawser::agent {
namespace {

constexpr std::size_t kEventRoundsMax = 32;                       ///< Per port and turn.
constexpr Duration kBlockedPause = std::chrono::milliseconds(1);  ///< A full ring of a peer has no bell for room.
constexpr std::uint32_t kTurnsAlone = 16;                         ///< Turns that may leave something out, in a row.

}  // namespace

Engine::~Engine() {
  for (Slot& slot : in_flight_) slot.flight_hook.unlink();
}

void Engine::add_backend(OpenBackend backend) { backends_.push_back(std::move(backend)); }

std::size_t Engine::turn(Instant now) {
  now = std::max(now, turned_);  // Who turns by the clock itself may have been a little ahead of the lane's own.
  turned_ = now;
  std::size_t work = turn_ports(now);
  part();  // After what came on them was read: a socket that is closed before loses its farewell.
  work += expire(now);
  if (!called_.empty()) work += serve_called(now);
  if (!held_.empty()) work += check_held(now);
  if (now >= timers_.next()) work += run_timers(now);
  work = serve_sessions(work, now);
  if (!gone_.empty()) bury(now);
  if (finalized_ > 0) {
    finalized_ = 0;
    core_.lane.news();
  }
  return work;
}

/// An idle turn is what a message is found by, so it looks where the last one came from, and at the other ports only
/// when that was a little ago. While anything is in flight each turn is for all.
bool Engine::favours_one(Instant now) const {
  constexpr Duration kOthersRest = std::chrono::nanoseconds(500);
  return favourite_ < backends_.size() && in_flight_count_ == 0 && turns_alone_ < kTurnsAlone &&
         now - others_turned_ < kOthersRest;
}

bool Engine::nothing_new(Instant now) {
  if (turns_alone_ >= kTurnsAlone || finalized_ > 0) return false;
  if (!work_.empty() || !parting_.empty() || !blocked_.empty() || !held_.empty() || !called_.empty()) {
    return false;
  }
  if (now >= std::min(earliest_deadline_, timers_.next())) return false;
  const auto has_news = [now](const OpenBackend& backend) { return backend.port->has_news(now); };
  const bool alone = favours_one(now);
  if (alone ? has_news(backends_[favourite_]) : std::ranges::any_of(backends_, has_news)) return false;
  if (!alone) others_turned_ = now;
  ++turns_alone_;
  return true;
}

std::size_t Engine::turn_ports(Instant now) {
  if (favours_one(now)) {
    ++turns_alone_;
    return turn_port(favourite_, now);
  }
  turns_alone_ = 0;
  others_turned_ = now;
  std::size_t work = 0;
  for (std::size_t i = 0; i < backends_.size(); ++i) work += turn_port(i, now);
  return work;
}

std::size_t Engine::turn_port(std::size_t backend, Instant now) {
  const std::size_t work = backends_[backend].port->turn(now, backend::TurnBudget());
  return work + poll_events(backend, now);
}

std::size_t Engine::serve_sessions(std::size_t work, Instant now) {
  if (!blocked_.empty() && (work > 0 || now >= blocked_until_)) {
    for (Session* session : blocked_) {
      session->in_blocked_list = false;
      enlist(*session);
    }
    blocked_.clear();
    blocked_until_ = Instant::max();
  }
  if (work_.empty()) return work;
  // What a session leaves over puts it into the list again.
  std::vector<Session*> round;
  round.swap(work_);
  for (Session* session : round) {
    session->in_work_list = false;
    work += offer(*session, now);
    work += pump_messages(*session, now);
  }
  if (work_.empty()) {
    round.clear();
    work_.swap(round);  // Keeps the room.
  }
  return work;
}

void Engine::block(Session& session, Instant now) {
  if (session.in_blocked_list) return;
  session.in_blocked_list = true;
  blocked_.push_back(&session);
  blocked_until_ = std::min(blocked_until_, now + kBlockedPause);
}

std::size_t Engine::poll_events(std::size_t backend, Instant now) {
  std::size_t work = 0;
  for (std::size_t round = 0; round < kEventRoundsMax; ++round) {
    const std::size_t count = backends_[backend].port->poll(events_);
    if (count != 0) favourite_ = backend;
    in_events_ = true;
    for (std::size_t i = 0; i < count; ++i) {
      backend::PortEvent& event = events_[i];
      switch (event.kind) {
        case backend::PortEvent::Kind::kChunkDone:
          on_chunk_done(event, now);
          break;
        case backend::PortEvent::Kind::kMessage:
          on_message(event, now);
          break;
        case backend::PortEvent::Kind::kArrival:
          on_arrival(event, now);
          break;
        case backend::PortEvent::Kind::kRegions:
          core_.renew_extras(backends_[backend]);
          card_changed();
          break;
        case backend::PortEvent::Kind::kUncounted:
          on_uncounted(event);
          break;
        case backend::PortEvent::Kind::kPathUp:
          on_path_up(backend, event, now);
          break;
        case backend::PortEvent::Kind::kPathDown:
          on_path_down(backend, event, now);
          break;
      }
      event = backend::PortEvent();  // Ports fill in what differs from an empty one.
    }
    in_events_ = false;
    if (!to_release_.empty()) release_now();
    work += count;
    if (count < events_.size()) break;
  }
  return work;
}

Instant Engine::next_deadline() const {
  Instant next = std::min({earliest_deadline_, timers_.next(), blocked_until_});
  if (!held_.empty()) next = std::min(next, look_at_held_);
  for (const OpenBackend& backend : backends_) next = std::min(next, backend.port->next_deadline());
  return next;
}

bool Engine::prepare_sleep() {
  if (!work_.empty() || !parting_.empty() || !called_.empty()) return false;
  put_off_held();
  bool idle = true;
  for (OpenBackend& backend : backends_) idle = backend.port->prepare_sleep() && idle;
  return idle;
}

void Engine::enlist(Session& session) {
  if (session.in_work_list) return;
  session.in_work_list = true;
  work_.push_back(&session);
}

/// What was sent is gone from the path, which cannot see that somebody waits for the peer. Told of it, the path judges
/// a stopped one in three heartbeats.
void Engine::tell_awaited(Session& session, Instant now) {
  PathEntry* const entry = session.awaits_peer() ? session.awaited() : nullptr;
  const std::uint64_t serial = entry == nullptr ? 0 : entry->serial;
  if (serial == session.awaited_serial) return;
  if (PathEntry* const told = session.find(session.awaited_serial)) told->path->set_awaited(false, now);
  session.awaited_serial = serial;
  if (entry != nullptr) entry->path->set_awaited(true, now);
}

Session& Engine::make_session(const std::shared_ptr<PeerCore>& peer) {
  peer->session = std::make_unique<Session>(peer, proto::NotifyLimits{.share = core_.options.limits.notification_bytes},
                                            core_.inbox, services_);
  peer->session->number = rng_.u64() | 1;
  sessions_.push_back(peer->session.get());
  // For who looks once more at what was planned, or whose submission is refused.
  if (peer->state.load(std::memory_order_relaxed) == PeerState::kDown) bury_soon(*peer->session);
  for (const auto& [channel, credit] : open_channels_) {
    peer->session->channels[channel].in.emplace(channel_window(credit));
    peer->session->channels[channel].credit_owed = true;
  }
  return *peer->session;
}

Session* Engine::session_of(const backend::Path* path) {
  if (path == last_path_) return last_session_;
  const auto found = by_path_.find(path);
  last_path_ = path;
  last_session_ = found == by_path_.end() ? nullptr : found->second;
  return last_session_;
}

void Engine::forget_path(const backend::Path* path) {
  by_path_.erase(path);
  last_path_ = nullptr;
  last_session_ = nullptr;
}

std::uint64_t Engine::peers_up() const {
  std::uint64_t count = 0;
  for (const Session* session : sessions_) count += session->control_serial != 0 ? 1 : 0;
  return count;
}

bool Engine::is_flushed() const {
  return std::ranges::all_of(sessions_, [](const Session* session) {
    const bool is_down = session->machine.state() == proto::SessionState::kDown;
    return is_down || (session->link_out.kept() == 0 && session->unsent.empty());
  });
}

void Engine::begin_close(Instant now) {
  closing_ = true;
  part();
  end_all(Status(Code::kCancelled, "agent '" + core_.identity.name + "' was closed"), now);
  const Status cause(Code::kDisconnected, "agent '" + core_.identity.name + "' was closed");
  // First those that reach the agent itself: nobody need hear of it, and what the kernel has of files outlives paths.
  for (OpenBackend& backend : backends_) {
    if (backend.traits->self_only) backend.port->begin_close(now);
  }
  for (Session* session : sessions_) feed(*session, proto::SessionEvent::kInvalidate, cause, now);
  for (Stranger& stranger : strangers_) {
    if (stranger.path != nullptr) backends_[stranger.backend].port->release_path(stranger.path);
  }
  strangers_.clear();
  for (OpenBackend& backend : backends_) {
    if (!backend.traits->self_only) backend.port->begin_close(now);
  }
}

void Engine::shut_down(Instant now) {
  part();
  backends_.clear();
  by_path_.clear();
  last_path_ = nullptr;
  for (Session* session : sessions_) session->paths.clear();
  for (Slot& slot : in_flight_) {
    if (slot.outcome.ok()) slot.outcome = Status(Code::kCancelled, "the agent was closed");
    end_quiet(slot, now);
  }
  drop_sessions();
  core_.lane.news();
}

/// A session and its peer own each other: one of them has to let go.
void Engine::drop_sessions() {
  work_.clear();
  blocked_.clear();
  blocked_until_ = Instant::max();
  gone_.clear();
  last_session_ = nullptr;
  for (Session* session : std::exchange(sessions_, {})) {
    const std::shared_ptr<PeerCore> peer = session->peer;
    end_services(*session, Status(Code::kCancelled, "the agent was closed"));
    core_.past.add(session->flow, session->latency);
    clear_alarms(*session);
    peer->session.reset();
  }
}

bool Engine::closed() const {
  if (in_flight_count_ > 0) return false;
  return std::all_of(backends_.begin(), backends_.end(),
                     [](const OpenBackend& backend) { return backend.port->idle(); });
}

}  // namespace hawser::agent
