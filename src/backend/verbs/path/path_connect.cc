// How a path's queue pairs come up, fail and are mended: the actions of proto/queue_pair.h, carried out.

#include <algorithm>

#include "backend/verbs/path/path.h"
#include "base/format.h"
#include "base/shown.h"

namespace hawser::backend::verbs {
namespace {

using Event = proto::QueuePairEvent;
using Action = proto::QueuePairAction;
using State = proto::QueuePairState;
using Role = proto::QueuePairRole;

/// A handshake message that was not answered is said again after this: the control stream loses none, but a peer may
/// have dropped it.
constexpr Duration kSayAgain = std::chrono::milliseconds(500);
/// What was posted comes back at once when a queue pair is in error; after this it is destroyed all the same.
constexpr Duration kDrainTime = std::chrono::milliseconds(200);
/// How long an inbound path may take until its first queue pair is ready.
constexpr Duration kInboundPatience = std::chrono::seconds(10);
/// A queue pair that is gone sends nothing again, so what it had sent has landed or was lost after this. Then what was
/// cancelled is over, also where the peer's agent is stopped and cannot fence it.
constexpr Duration kLinger = std::chrono::milliseconds(500);
/// A chunk of which the peer's device says that the request is invalid is posted again so often.
constexpr std::uint32_t kPostedAgainMax = 2;
/// A path of which a queue pair broke at one and the same chunk so often does not carry it.
constexpr std::uint32_t kStrikesMax = 5;
/// A path whose queue pairs each broke so often in a row without having carried anything is given up.
constexpr std::uint32_t kTrialsMax = 8;
constexpr auto kNoTransport = static_cast<std::uint8_t>(Transport::kUnknown);
constexpr proto::BackoffOptions kBackoff = {.first = std::chrono::milliseconds(10), .longest = std::chrono::seconds(1)};

}  // namespace

void VerbsPath::open(Path* control, Instant deadline) {
  control_ = control;
  deadline_ = deadline;
}

void VerbsPath::accept(Path* control, Instant now) {
  inbound_ = true;
  control_ = control;
  deadline_ = now + kInboundPatience;
}

void VerbsPath::on_control_up(const PortEvent& event) {
  peer_ = *event.peer;
  name_ = peer_.name;
  session_ = event.session;
  supersedes_ = event.supersedes;
  open_messages();
  lanes_told_ = static_cast<std::uint32_t>(shared_.lanes.size());
  for (const auto& lane : shared_.lanes) were_away_.push_back(lane->is_away());
  ports_told_ = true;
  say(told_ports());
}

wire::RdmaPorts VerbsPath::told_ports() const {
  wire::RdmaPorts ports;
  for (std::size_t lane = 0; lane < lanes_told_; ++lane) {
    ports.ports.push_back(shared_.lanes[lane]->nic->told());
    if (is_away(lane)) ports.ports.back().transport = kNoTransport;  // It has its place for the keys' sake.
  }
  if (messages_ != nullptr) {
    ports.receives = shared_.options.pair.messages;
    ports.receive_bytes = Messages::kSlotBytes;
  }
  ports.immediates = receives();
  ports.host = shared_.host;
  return ports;
}

void VerbsPath::say(const wire::QueuePairMessage& message) {
  if (outgoing_.size() == kOutgoingMax) {
    go_down(Status(Code::kDisconnected, base::format("{} asks for queue pairs and does not take the answers", name_))
                .with_scope(Scope::kPath));
    return;
  }
  outgoing_.push_back(wire::encode(message));
  send_outgoing();
}

std::unique_ptr<VerbsPath::Pair> VerbsPath::make_pair(Role role, std::uint32_t lane, std::uint32_t remote) {
  auto pair = std::make_unique<Pair>(*shared_.lanes[lane], shared_.options.pair, role, lane, remote);
  pair->mbit_per_s = rail_speed(lane, remote);
  return pair;
}

std::size_t VerbsPath::on_message(std::span<const std::byte> bytes, Instant now) {
  const std::byte kind = bytes.empty() ? std::byte{0xff} : bytes[0];
  if (kind == std::byte{wire::kAgentMessage} || kind == std::byte{wire::kNumberedMessage}) {
    return on_agent_message(bytes, now);
  }
  const Result<wire::QueuePairMessage> message = wire::decode_queue_pair(bytes);
  if (!message) {
    go_down(message.error().with_scope(Scope::kPath));
    return 0;
  }
  constexpr std::string_view kWords[] = {"its ports",         "its connect",      "its accept",     "its ready",
                                         "that it is broken", "what it received", "what it counted"};
  heard_ = now;
  last_word_ = kWords[message->index()];
  if (const auto* ports = std::get_if<wire::RdmaPorts>(&*message)) on_ports(*ports, now);
  if (const auto* connect = std::get_if<wire::QueuePairConnect>(&*message)) on_connect(*connect, now);
  if (const auto* accept = std::get_if<wire::QueuePairAccept>(&*message)) on_accept(*accept, now);
  if (const auto* told = std::get_if<wire::MessagesReceived>(&*message); told != nullptr && messages_ != nullptr) {
    if (Status status = messages_->on_told(told->received); !status.ok()) go_down(status);
  }
  if (const auto* told = std::get_if<wire::ImmediatesCounted>(&*message)) on_counted(*told);
  if (const auto* ready = std::get_if<wire::QueuePairReady>(&*message)) {
    if (ready->pair < pairs_.size()) on_ready_heard(*ready, now);
  }
  if (const auto* broken = std::get_if<wire::QueuePairBroken>(&*message)) {
    if (broken->pair >= pairs_.size() || broken->epoch != pairs_[broken->pair]->machine.epoch()) return 0;
    Pair& pair = *pairs_[broken->pair];
    pair.cause = Status(broken->code, base::format("{} says: {}", name_, base::shown(broken->reason)));
    if (pair.machine.state() == State::kConnecting) pair.ways.on_met(pair.qp.gid().text(), "its address");
    pair.ways.on_failed(pair.cause.message());
    perform(broken->pair, pairs_[broken->pair]->machine.on_message(Event::kBroken, broken->epoch), now);
  }
  return 0;
}

void VerbsPath::on_ports(const wire::RdmaPorts& ports, Instant now) {
  if (!ports_.empty()) return update_ports(ports);
  ports_ = ports.ports;
  if (messages_ != nullptr && !messages_->on_peer(ports.receives, ports.receive_bytes)) messages_.reset();
  credits_ = receives() == 0 ? 0 : ports.immediates;
  if (inbound_) return;  // Who opened the path makes the rails.
  if (!choose_pairs(ports)) return;
  for (std::size_t i = 0; i < pairs_.size() && !is_down(); ++i) feed(i, Event::kWant, now);
}

/// The same ports, at other addresses. What they are for, and how many, stays as it was agreed.
void VerbsPath::update_ports(const wire::RdmaPorts& ports) {
  const auto same = [](const wire::RdmaPort& a, const wire::RdmaPort& b) {
    return a.device == b.device && a.number == b.number;
  };
  if (std::ranges::equal(ports_, ports.ports, same)) ports_ = ports.ports;
}

/// False, and the path is down: no two ports reach each other.
bool VerbsPath::choose_pairs(const wire::RdmaPorts& told) {
  std::vector<RailPort> ours, theirs;
  for (std::size_t lane = 0; lane < lanes_told_; ++lane) {
    ours.push_back(shared_.lanes[lane]->nic->rail_now());
    if (is_away(lane)) ours.back().transport = Transport::kUnknown;
  }
  for (const wire::RdmaPort& port : ports_) theirs.push_back(rail_port(port));
  std::vector<Rail> rails = choose_rails(ours, theirs, shared_.pairing);
  std::erase_if(rails, [this](const Rail& rail) { return is_away(rail.local); });
  if (rails.empty()) {
    go_down(why_no_rails(ours, theirs, shared_.pairing).with_scope(Scope::kPath));
    return false;
  }
  if (told.host != 0 && told.host == shared_.host) {
    std::erase_if(rails, [this](const Rail& rail) { return shared_.lanes[rail.local]->nic->is_srd(); });
    if (rails.empty()) go_down(refuse_same_host(name_));
  }
  for (std::uint32_t i = 0; i < shared_.options.pairs; ++i) {
    for (const Rail& rail : rails) {
      if (pairs_.size() == wire::kPairsMax) break;
      pairs_.push_back(make_pair(Role::kActive, rail.local, rail.remote));
      pairs_.back()->backoff = proto::Backoff(kBackoff, Instant::max());
    }
  }
  return !rails.empty();
}

void VerbsPath::on_connect(const wire::QueuePairConnect& message, Instant now) {
  const bool fits =
      inbound_ && message.local < ports_.size() && message.remote < lanes_told_ && !were_away_[message.remote];
  if (!fits) {
    go_down(Status(Code::kCorrupt, base::format("{} asked for a queue pair between ports that are not there", name_))
                .with_scope(Scope::kPath));
    return;
  }
  while (pairs_.size() <= message.pair) {
    // Those in between are asked for by messages of their own, which set their ports before anything is made.
    pairs_.push_back(make_pair(Role::kPassive, message.remote, message.local));
  }
  if (pairs_[message.pair]->machine.epoch() == 0) {
    pairs_[message.pair] = make_pair(Role::kPassive, message.remote, message.local);
  }
  Pair& pair = *pairs_[message.pair];
  if (message.epoch > pair.machine.epoch()) pair.peer = message.endpoint;
  perform(message.pair, pair.machine.on_connect(message.epoch), now);
}

void VerbsPath::on_accept(const wire::QueuePairAccept& message, Instant now) {
  if (inbound_ || message.pair >= pairs_.size()) return;
  Pair& pair = *pairs_[message.pair];
  if (message.epoch == pair.machine.epoch() && pair.machine.state() == State::kConnecting) pair.peer = message.endpoint;
  perform(message.pair, pair.machine.on_message(Event::kAccept, message.epoch), now);
}

void VerbsPath::on_ready_heard(const wire::QueuePairReady& message, Instant now) {
  Pair& pair = *pairs_[message.pair];
  if (pair.machine.state() == State::kBackoff && message.epoch == pair.machine.epoch()) {
    // The peer asks for an attempt. One that asks at each failure has no more attempts made than a long pause allows.
    if (now < pair.next_ask) return;
    pair.next_ask = now + kBackoff.longest;
  }
  perform(message.pair, pair.machine.on_message(Event::kReadyHeard, message.epoch), now);
}

void VerbsPath::feed(std::size_t index, Event event, Instant now) {
  perform(index, pairs_[index]->machine.on(event), now);
}

void VerbsPath::reconnect(Instant now) {
  if (inbound_) return ask_for_attempts();
  for (std::size_t i = 0; i < pairs_.size() && !is_down(); ++i) {
    if (pairs_[i]->machine.state() != State::kBackoff) continue;
    pairs_[i]->backoff.reset(Instant::max());
    feed(i, Event::kWant, now);
  }
}

/// The opener alone starts attempts. Nothing is asked while it has not taken what was said before.
void VerbsPath::ask_for_attempts() {
  for (std::size_t i = 0; i < pairs_.size() && !is_down() && outgoing_.empty(); ++i) {
    const std::uint32_t epoch = pairs_[i]->machine.epoch();
    if (epoch > 0) say(wire::QueuePairReady{.pair = static_cast<std::uint8_t>(i), .epoch = epoch});
  }
}

/// Small packets get through, or it would not have been ready.
void VerbsPath::note_lost_packets(Pair& pair) {
  const std::uint8_t mtu = pair.qp.mtu();
  const bool shrinks = pair.ways.on_broken(mtu, pair.qp.lost_full(), pair.qp.carried_full());
  if (!pair.qp.lost_full() || pair.qp.carried_full()) return;
  std::string text = base::format("packets of {} bytes get no answer while small ones do", 128u << mtu);
  if (shrinks) text += base::format("; the next ones have {}", 128u << pair.ways.mtu_max());
  pair.cause = Status(Code::kDisconnected, std::move(text)).with_scope(Scope::kPath).because(pair.cause);
}

void VerbsPath::fault(std::size_t index, const Status& cause, Instant now) {
  Pair& pair = *pairs_[index];
  const State state = pair.machine.state();
  const bool running =
      state == State::kReady || state == State::kProving || state == State::kAccepted || state == State::kConnecting;
  if (!running) return;
  pair.cause = cause;
  pair.ways.on_failed(cause.message());
  if (state == State::kReady) note_lost_packets(pair);
  HAWSER_LOG(shared_.context.log, kInfo, "verbs: queue pair {} to {}: {}", index, name_, pair.cause.to_string());
  feed(index, Event::kFault, now);
  if (pair.machine.state() == State::kDraining && pair.qp.is_drained()) feed(index, Event::kDrained, now);
}

void VerbsPath::perform(std::size_t index, std::span<const Action> actions, Instant now) {
  if (!actions.empty()) shared_.attention = true;
  for (const Action action : actions) {
    if (is_down()) return;
    Status status = act(index, action, now);
    if (status.ok()) continue;
    fault(index, status, now);
    return;
  }
}

Status VerbsPath::act(std::size_t index, Action action, Instant now) {
  Pair& pair = *pairs_[index];
  const auto number = static_cast<std::uint8_t>(index);
  const std::uint32_t epoch = pair.machine.epoch();
  switch (action) {
    case Action::kNone:
      break;
    case Action::kNextEpoch:
      pair.machine.next_epoch();
      break;
    case Action::kMake:
      return make(pair);
    case Action::kJoin:
      pair.ways.on_met(pair.qp.gid().text(), gid_of({.bytes = pair.peer.gid}).text());
      return pair.qp.join(pair.peer);
    case Action::kProve:
      return pair.qp.prove();
    case Action::kSendConnect:
      say(wire::QueuePairConnect{.pair = number,
                                 .epoch = epoch,
                                 .local = static_cast<std::uint8_t>(pair.lane),
                                 .remote = static_cast<std::uint8_t>(pair.remote),
                                 .pairs = static_cast<std::uint8_t>(pairs_.size()),
                                 .endpoint = pair.qp.endpoint()});
      break;
    case Action::kSendAccept:
      say(wire::QueuePairAccept{.pair = number, .epoch = epoch, .endpoint = pair.qp.endpoint()});
      break;
    case Action::kSendReady:
      say(wire::QueuePairReady{.pair = number, .epoch = epoch});
      break;
    case Action::kSendBroken:
      say(wire::QueuePairBroken{
          .pair = number,
          .epoch = epoch,
          .code = pair.cause.ok() ? Code::kTimedOut : pair.cause.code(),
          .reason = pair.cause.ok() ? "it did not become ready in time" : pair.cause.to_string()});
      break;
    case Action::kDrain:
      pair.qp.drain();
      break;
    case Action::kReset:
      reset(pair, now);
      break;
    case Action::kArm:
      arm(pair, now);
      break;
    case Action::kArmBackoff:
      pair.timer = pair.backoff.next(now, shared_.rng).value_or(now + kBackoff.longest);
      pair.expires = Instant::max();
      break;
    case Action::kDisarm:
      pair.timer = pair.expires = Instant::max();
      break;
    case Action::kReportReady:
      report_ready(pair, now);
      break;
    case Action::kReportLost:
      report_lost(pair, now);
      break;
    case Action::kReportFenced:
      fenced(pair);
      break;
    case Action::kReportFailed:
      report_failed(pair);
      break;
  }
  return {};
}

void VerbsPath::arm(Pair& pair, Instant now) {
  const bool draining = pair.machine.state() == State::kDraining;
  pair.timer = draining ? Instant::max() : now + kSayAgain;
  pair.expires = now + (draining ? kDrainTime : shared_.options.connect_timeout);
}

void VerbsPath::reset(Pair& pair, Instant now) {
  if (pair.lost.empty()) pair.quiet_at = now == Instant::max() ? now : now + kLinger;
  settle_immediates(pair);
  std::vector<Flight> back;
  Status worn;
  pair.qp.reset(&back);
  if (!back.empty()) pair.lost_epoch = pair.qp.epoch();
  if (messages_ != nullptr && is_first(pair)) messages_->on_reset();
  const bool had_none = pair.lost.empty();
  for (Flight& flight : back) {
    if (flight.immediate != 0 && flight.immediate <= pair.qp.words_out().counted()) {
      end(flight, Status());  // It had landed, and the target knows.
    } else if (!flight.failure.ok() && !flight.struck) {
      end(flight, flight.failure.with_peer(name_));
    } else if (flight.cancelled && flight.chunk.op == Operation::kRead) {
      end(flight, cancelled());  // Nothing of it can land at the peer.
    } else {
      if (flight.struck) worn = strike(flight);
      pair.lost.push_back(std::move(flight));
    }
  }
  if (had_none && !pair.lost.empty() && now != Instant::max()) pair.stuck_at = now + shared_.options.patience;
  if (worn.ok()) return;
  go_down(link_failure("a queue pair broke at the same operation again and again")
              .because(pair.cause.ok() ? worn : pair.cause));
}

/// The queue pair broke at it, so another may carry it. What the peer's device calls invalid each time fails, once
/// nothing of it can land; of other causes the path is at fault, and the one to give up with is returned.
Status VerbsPath::strike(Flight& flight) {
  const std::uint32_t count = ++struck_[flight.chunk.cookie];
  flight.struck = false;
  const Status why = std::exchange(flight.failure, Status());
  if (why.scope() != Scope::kRequest) return count < kStrikesMax ? Status() : why;
  if (count <= kPostedAgainMax) return {};
  flight.failure = Status(why.code(), base::format("it was posted {} times, and failed each time", count))
                       .with_scope(Scope::kRequest)
                       .because(why);
  return {};
}

std::size_t VerbsPath::end_quiet(Pair& pair, Instant now) {
  if (now < pair.quiet_at) return 0;
  return std::erase_if(pair.lost, [this](const Flight& flight) {
    if (flight.cancelled) end(flight, cancelled());
    return flight.cancelled;
  });
}

void VerbsPath::fenced(Pair& pair) {
  for (Flight& flight : pair.lost) {
    if (flight.cancelled) {
      end(flight, cancelled());
    } else if (!flight.failure.ok()) {
      end(flight, flight.failure.with_peer(name_));
    } else {
      again_.push_back(std::move(flight));
    }
  }
  pair.lost.clear();
  pair.stuck_at = Instant::max();
}

void VerbsPath::report_ready(Pair& pair, Instant now) {
  ++ready_;
  held_back_ = false;
  pair.qp.on_ready();
  pair.ways.on_proved();
  pair.trial.begin(now, pair.qp.carried());
  pair.failures = 0;
  pair.cause = Status();
  lost_since_ = Instant::max();
  if (state_ != PathState::kConnecting) return;
  state_ = PathState::kUp;
  deadline_ = Instant::max();
  told_up_ = true;
  shared_.events.path_up(this, &peer_, session_, inbound_, supersedes_, /*held=*/false);
  tell_arrivals();
  if (messages_ == nullptr) return;
  messages_->allow();
  messages_->deliver();
}

/// One that carries nothing is not mended by being ready: its pauses grow on, and are not for ever.
void VerbsPath::report_lost(Pair& pair, Instant now) {
  if (--ready_ == 0) lost_since_ = now;
  if (messages_ != nullptr && is_first(pair)) messages_->on_lost();
  // Without a cause the peer ended it, and counts itself. A cancelled operation, or one that is at fault itself, says
  // nothing against it.
  const bool excused = pair.cause.ok() || pair.cause.code() == Code::kCancelled || pair.qp.is_fault_own();
  if (pair.trial.end({.at = now, .carried = pair.qp.carried(), .was_idle = pair.qp.is_idle(), .excused = excused})) {
    pair.backoff.reset(Instant::max());
  } else if (std::ranges::all_of(pairs_, [](const auto& each) { return each->trial.failed() >= kTrialsMax; })) {
    go_down(link_failure("queue pairs break as soon as they are ready").because(pair.cause));
  }
}

/// A path that never came up does not try for ever: the agent has other backends.
void VerbsPath::report_failed(Pair& pair) {
  ++pair.failures;
  const bool all_failed = std::ranges::all_of(
      pairs_, [this](const auto& each) { return each->failures > 0 && !each->ways.has_more(ways_of(*each)); });
  if (state_ != PathState::kConnecting || !all_failed || inbound_) return;
  go_down(link_failure("no queue pair could be connected").because(why_not(pair)));
}

/// Its last cause, and where several ways were tried what became of each.
Status VerbsPath::why_not(const Pair& pair) const {
  const std::string tried = pair.ways.tried();
  if (tried.find(';') == std::string::npos) return pair.cause;
  return Status(Code::kDisconnected, base::format("tried {}", tried)).with_scope(Scope::kPath).because(pair.cause);
}

Status VerbsPath::link_failure(std::string_view what) const {
  return Status(Code::kDisconnected, base::format("{} to {}", what, name_))
      .with_scope(Scope::kPath)
      .with_advice("`hawser doctor` and `hawser topo` show the ports and their addresses; docs/rdma.md has the causes");
}

void VerbsPath::on_lane_fault(std::uint32_t lane, const Status& why, Instant now) {
  for (std::size_t i = 0; i < pairs_.size() && !is_down(); ++i) {
    if (pairs_[i]->lane == lane) fault(i, why, now);
  }
}

bool VerbsPath::on_address_change(std::uint32_t lane, const Status& why, Instant now) {
  if (is_down()) return false;
  ports_due_ = ports_told_;
  shared_.attention = true;
  const NicAddress address = shared_.lanes[lane]->nic->address();
  bool any = false;
  for (std::size_t i = 0; i < pairs_.size() && !is_down(); ++i) {
    const QueuePair& qp = pairs_[i]->qp;
    if (pairs_[i]->lane != lane) continue;
    pairs_[i]->ways.forget();
    const auto is_its = [&qp](const Gid& gid) { return gid.index == qp.gid().index && gid.bytes == qp.gid().bytes; };
    const bool fits = std::ranges::any_of(address.gids, is_its) && qp.mtu() <= address.mtu;
    if (qp.number() == 0 || fits) continue;
    fault(i, why, now);
    any = true;
  }
  return any;
}

std::size_t VerbsPath::run_timers(Instant now) {
  std::size_t work = 0;
  for (std::size_t i = 0; i < pairs_.size() && !is_down(); ++i) {
    Pair& pair = *pairs_[i];
    work += end_quiet(pair, now);
    if (now >= pair.expires) {
      pair.expires = pair.timer = Instant::max();
      if (pair.machine.state() != State::kDraining) {
        pair.cause =
            Status(Code::kTimedOut, "the handshake of the queue pair was not finished in time").because(pair.cause);
      }
      feed(i, Event::kExpired, now);
      ++work;
    } else if (now >= pair.timer) {
      pair.timer = now + kSayAgain;
      feed(i, Event::kTimer, now);
      ++work;
    }
  }
  if (is_down()) return work;
  if (now >= deadline_) {
    go_down(Status(Code::kTimedOut, base::format("no queue pair to {} was ready in time", name_))
                .with_scope(Scope::kPath)
                .because(standing(now)));
  } else if (std::ranges::any_of(pairs_,
                                 [now](const auto& pair) { return !pair->lost.empty() && now >= pair->stuck_at; })) {
    // Other queue pairs are ready, but only a new one of this end makes sure that nothing of the old one can land.
    go_down(link_failure("a queue pair could not be made anew within `patience`").because(standing(now)));
  } else if (lost_since_ != Instant::max() && now >= lost_since_ + shared_.options.patience) {
    go_down(link_failure("no queue pair was ready again within `patience`").because(standing(now)));
  }
  return work;
}

}  // namespace hawser::backend::verbs
