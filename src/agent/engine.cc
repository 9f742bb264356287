#include "agent/engine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/planted.h"

namespace hawser::agent {

Engine::Engine(const Uses& uses)
    : uses_(uses),
      rng_(uses.rng),
      ports_(*this),
      news_(uses.inbox, uses.waiters),
      services_(channels_),
      sessions_({.share = uses.options.limits.notification_bytes}, uses.inbox, rng_, services_, channels_),
      path_log_(uses.log, uses.options.name),
      reach_(ports_, uses.reports),
      opener_(ports_, paths_, reach_),
      fences_({.ports = ports_,
               .reach = reach_,
               .opener = opener_,
               .timers = timers_,
               .rng = rng_,
               .peer_timeout = uses.options.peer_timeout}),
      better_({.sessions = sessions_,
               .reach = reach_,
               .opener = opener_,
               .timers = timers_,
               .rng = rng_,
               .peer_timeout = uses.options.peer_timeout}),
      strangers_(ports_),
      connector_({.sessions = sessions_,
                  .ports = ports_,
                  .paths = paths_,
                  .reach = reach_,
                  .opener = opener_,
                  .fences = fences_,
                  .better = better_,
                  .strangers = strangers_,
                  .timers = timers_,
                  .peers = uses.peers,
                  .news = news_,
                  .log = path_log_,
                  .rng = rng_,
                  .options = uses.options,
                  .identity = uses.identity,
                  .listener = *this}),
      graveyard_(
          {.sessions = sessions_, .services = services_, .paths = paths_, .timers = timers_, .peers = uses.peers}),
      link_memory_(timers_),
      bindings_(sessions_, timers_),
      router_(ports_, reach_, connector_, bindings_, uses.clock),
      link_(sessions_, ports_),
      messages_({.sessions = sessions_,
                 .link = link_,
                 .channels = channels_,
                 .services = services_,
                 .connector = connector_,
                 .peers = uses.peers,
                 .news = news_}),
      arrivals_({.sessions = sessions_,
                 .news = news_,
                 .inbox = uses.inbox,
                 .regions = uses.regions,
                 .notification_bytes_total = uses.options.limits.notification_bytes_total,
                 .agent = uses.options.name,
                 .log = uses.log}),
      exchange_({.sessions = sessions_,
                 .link = link_,
                 .connector = connector_,
                 .bindings = bindings_,
                 .cards = uses.cards,
                 .peers = uses.peers,
                 .news = news_}),
      greeter_({.sessions = sessions_,
                .ports = ports_,
                .services = services_,
                .connector = connector_,
                .fences = fences_,
                .better = better_,
                .messages = messages_,
                .arrivals = arrivals_,
                .exchange = exchange_,
                .cards = uses.cards,
                .news = news_}),
      reader_({.paths = paths_,
               .link = link_,
               .connector = connector_,
               .greeter = greeter_,
               .messages = messages_,
               .arrivals = arrivals_,
               .exchange = exchange_}),
      lent_(uses.regions, ports_, uses.keys),
      writes_(sessions_, ports_, paths_),
      carrier_({.sessions = sessions_,
                .services = services_,
                .link = link_,
                .connector = connector_,
                .messages = messages_,
                .bindings = bindings_,
                .lent = lent_,
                .writes = writes_,
                .peers = uses.peers,
                .news = news_,
                .clock = uses.clock,
                .agent = uses.options.name}),
      arrives_(sessions_, link_),
      times_(ports_),
      transfers_({.sessions = sessions_,
                  .held = held_,
                  .arrives = arrives_,
                  .times = times_,
                  .news = news_,
                  .slots = uses.slots,
                  .clock = uses.clock,
                  .agent = uses.options.name}),
      at_once_(sessions_, times_, uses.clock),
      dispatcher_({.sessions = sessions_,
                   .ports = ports_,
                   .paths = paths_,
                   .transfers = transfers_,
                   .held = held_,
                   .arrives = arrives_,
                   .router = router_,
                   .connector = connector_,
                   .fences = fences_,
                   .at_once = at_once_,
                   .slots = uses.slots,
                   .peers = uses.peers}) {}

Engine::~Engine() = default;

std::size_t Engine::turn(Instant now) {
  now = std::max(now, turned_);  // Who turns by the clock itself may have been a little ahead of the lane's own.
  turned_ = now;
  std::size_t work = ports_.turn(now, transfers_.in_flight() > 0);
  ports_.releases().part();  // After what came on them was read: a socket that is closed before loses its farewell.
  work += expire(now);
  if (held_.has_called()) work += dispatcher_.serve_called(now);
  if (held_.has_waiting()) work += dispatcher_.check_held(now);
  if (now >= timers_.next()) work += run_timers(now);
  work = serve_sessions(work, now);
  if (sessions_.has_retired()) graveyard_.bury();
  news_.wake_waiters();
  return work;
}

bool Engine::nothing_new(Instant now) {
  const bool has_work = news_.any() || sessions_.has_work() || sessions_.has_blocked() ||
                        ports_.releases().has_parting() || held_.has_waiting() || held_.has_called();
  if (has_work) return false;
  if (now >= std::min({transfers_.next_deadline(), services_.next_deadline(), timers_.next()})) return false;
  return ports_.nothing_new(now, transfers_.in_flight() > 0);
}

Instant Engine::next_deadline() const {
  return std::min({transfers_.next_deadline(), services_.next_deadline(), timers_.next(), sessions_.blocked_until(),
                   held_.look_again(), ports_.next_deadline()});
}

bool Engine::prepare_sleep() {
  if (sessions_.has_work() || ports_.releases().has_parting() || held_.has_called()) return false;
  held_.put_off(turned_);
  return ports_.prepare_sleep() && services_.prepare_sleep();
}

void Engine::on_event(std::size_t backend, const backend::PortEvent& event, Instant now) {
  switch (event.kind) {
    case backend::PortEvent::Kind::kChunkDone:
      return LentWrites::is_its(event.cookie) ? writes_.on_chunk_done(event) : dispatcher_.on_chunk_done(event, now);
    case backend::PortEvent::Kind::kMessage:
      return reader_.on_message(event, now);
    case backend::PortEvent::Kind::kArrival:
      if (Session* const session = paths_.find(event.path)) {
        const Status bad = arrivals_.on_chunk(*session, event.transfer, event.chunk);
        if (!bad.ok()) connector_.drop(*session, bad, now);
      }
      return;
    case backend::PortEvent::Kind::kRegions:
      uses_.cards.renew(ports_[backend]);
      return exchange_.on_own_change();
    case backend::PortEvent::Kind::kUncounted:
      if (Session* const session = paths_.find(event.path)) arrives_.on_uncounted(*session, event.transfer);
      return;
    case backend::PortEvent::Kind::kPathUp:
      return connector_.on_path_up(backend, event, now);
    case backend::PortEvent::Kind::kPathDown:
      return connector_.on_path_down(backend, event, now);
    case backend::PortEvent::Kind::kPathSilent:
    case backend::PortEvent::Kind::kPathHeard:
      return connector_.on_path_silence(event, now);
  }
}

void Engine::on_failed(Session& session, const Status& told, Instant now) {
  services_.end(session, told);
  transfers_.end_of(session, told, now);
}

void Engine::on_paths_gone(Session& session) {
  ArrivalDesk::forget(session);
  MessageDesk::forget(session);
  CardExchange::forget(session);
  writes_.on_paths_gone(session);
  transfers_.on_paths_gone(session, uses_.clock.now());
}

std::size_t Engine::expire(Instant now) {
  if (now < std::min(transfers_.next_deadline(), services_.next_deadline())) return 0;
  if (base::planted(base::Planted::kDeadlineIgnored)) return 0;
  return transfers_.expire(now) + services_.expire(now);
}

std::size_t Engine::serve_sessions(std::size_t work, Instant now) {
  sessions_.unblock(work > 0, now);
  sessions_.serve_all([&](Session& session) {
    work += dispatcher_.offer(session, now);
    work += pump(session, now);
  });
  return work;
}

/// What the session has to tell its peer, in this order: greetings, what was not sent before, and then the new.
std::size_t Engine::pump(Session& session, Instant now) {
  greeter_.greet_all(session, now);
  Greeter::tell_awaited(session, now);
  if (session.control() == nullptr) return 0;
  std::size_t work = 0;
  const bool all = SessionLink::pump(session, &work) && arrivals_.pump_credit(session, &work) &&
                   MessageDesk::pump_credits(session, &work) && messages_.pump_unsent(session, &work) &&
                   arrives_.pump(session, &work) && exchange_.pump(session, &work) && services_.pump(session, &work) &&
                   SessionLink::pump_ack(session, now, &work);
  link_memory_.note(session, now);
  if (!all) {
    sessions_.block(session, now);
  } else if (session.links.ack_due(true)) {
    sessions_.enlist(session);  // It waits for company, but not for long.
  }
  return work;
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
      connector_.on_pause_over(session, now);
      return 1;
    case SessionTimer::kConnect:
      return connector_.on_connect_deadline(session, now);
    case SessionTimer::kBetter:
      better_.seek(session, now);
      return 1;
    case SessionTimer::kLetGo:
      return bindings_.let_go(session, now);
    case SessionTimer::kTrim:
      link_memory_.take_back(session, now);
      return 0;
    case SessionTimer::kFence:
      if (const Status late = fences_.fence(session, now); !late.ok()) connector_.drop(session, late, now);
      return 1;
    case SessionTimer::kCount:
      break;
  }
  return 0;
}

void Engine::describe(const Visitor& visitor) const {
  for (Session* const session : sessions_.all()) {
    if (session->slots == 0) continue;
    Waiting transfers{.who = "transfers",
                      .what = session->control_serial == 0 ? "a path" : "their chunks",
                      .peer = session->peer->name,
                      .count = session->slots,
                      .since = Instant::max()};
    for (const Slot& slot : session->in_flight) {
      transfers.since = std::min(transfers.since, slot.submitted);
      transfers.until = std::min(transfers.until, slot.deadline);
    }
    visitor(transfers);
  }
  services_.describe(visitor);
  for (const OpenBackend& open : ports_.all()) open.port->describe(visitor);
}

std::uint64_t Engine::peers_up() const {
  const auto is_up = [](const Session* session) { return session->control_serial != 0; };
  return static_cast<std::uint64_t>(std::ranges::count_if(sessions_.all(), is_up));
}

std::vector<const Session*> Engine::behind() const {
  std::vector<const Session*> all;
  for (const Session* const session : sessions_.all()) {
    const bool is_down = session->machine.state() == proto::SessionState::kDown;
    if (!is_down && (session->links.keeps_any() || !session->unsent.empty())) all.push_back(session);
  }
  return all;
}

void Engine::add_service(Service& service) {
  services_.add(service);
  messages_.give_channels(service.channels());
  for (Session* const session : sessions_.all()) {
    if (session->control_serial != 0) service.on_control(*session);
  }
}

void Engine::begin_close(Instant now) {
  sessions_.begin_close();
  ports_.releases().part();
  const Status ended(Code::kCancelled, "agent '" + uses_.options.name + "' was closed");
  transfers_.end_all(ended, now);
  services_.close(ended, now);
  for (Session* const session : sessions_.all()) services_.end(*session, ended);
  const Status cause(Code::kDisconnected, "agent '" + uses_.options.name + "' was closed");
  // First those that reach the agent itself: nobody need hear of it, and what the kernel has of files outlives paths.
  for (OpenBackend& backend : ports_.all()) {
    if (backend.traits->self_only) backend.port->begin_close(now);
  }
  for (Session* const session : sessions_.all()) {
    connector_.feed(*session, proto::SessionEvent::kInvalidate, cause, now);
  }
  strangers_.drop_all();
  for (OpenBackend& backend : ports_.all()) {
    if (!backend.traits->self_only) backend.port->begin_close(now);
  }
}

bool Engine::closed() const {
  return transfers_.in_flight() == 0 &&
         std::ranges::all_of(ports_.all(), [](const OpenBackend& backend) { return backend.port->idle(); });
}

void Engine::shut_down(Instant now) {
  ports_.releases().part();
  ports_.all().clear();
  for (Session* const session : sessions_.all()) session->paths.clear();
  transfers_.shut_down(now);
  graveyard_.bury_all();
  uses_.waiters.wake();
}

}  // namespace hawser::agent
