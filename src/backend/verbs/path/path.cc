#include "backend/verbs/path/path.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "backend/verbs/path/pair_report.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::verbs {
namespace {

/// No event tells of an MTU that shrank, and some devices (Soft-RoCE) then never end what is posted.
constexpr Duration kMtuEvery = std::chrono::milliseconds(250);
/// How long an inbound path may take until its first queue pair is ready.
constexpr Duration kInboundPatience = std::chrono::seconds(10);
constexpr auto kNoTransport = static_cast<std::uint8_t>(Transport::kUnknown);

Status cancelled() { return Status(Code::kCancelled, "the transfer was cancelled").with_scope(Scope::kRequest); }

Status not_allowed(std::string_view what) {
  return Status(Code::kDenied, std::string(what)).with_scope(Scope::kRequest).with_buffer(BufferState::kUntouched);
}

bool fits(const Chunk& chunk, std::uint64_t size) {
  return std::ranges::all_of(
      chunk.pieces, [size](const Piece& piece) { return piece.size <= size && piece.remote <= size - piece.size; });
}

/// How the chunks of a path end that went down.
Status chunk_status_of(const Status& why, Scope scope, const std::string& name) {
  // kTimedOut of a chunk would mean its own deadline: silence of the peer is only the cause.
  if (scope != Scope::kPath && why.code() != Code::kTimedOut) return why;
  return Status(Code::kDisconnected, base::format("the path to {} was lost", name))
      .with_scope(scope)
      .with_peer(name)
      .because(why);
}

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
  std::vector<bool> are_away;
  for (const auto& lane : shared_.lanes) are_away.push_back(lane->is_away());
  ports_.begin(std::move(are_away));
  say(own_ports());
}

wire::RdmaPorts VerbsPath::own_ports() const {
  wire::RdmaPorts ports;
  for (std::size_t lane = 0; lane < ports_.count(); ++lane) {
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
  if (!outbox_.add(wire::encode(message))) {
    go_down(Status(Code::kDisconnected, base::format("{} asks for queue pairs and does not take the answers", name_))
                .with_scope(Scope::kPath));
    return;
  }
  if (control_ != nullptr) outbox_.send_to(*control_);
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
  std::visit([&](const auto& word) { hear(word, now); }, *message);
  return 0;
}

void VerbsPath::hear(const wire::RdmaPorts& ports, Instant now) {
  if (!ports_.take(ports)) return;
  if (messages_ != nullptr && !messages_->on_peer(ports.receives, ports.receive_bytes)) messages_.reset();
  arrivals_.agree(receives(), ports.immediates);
  if (inbound_) return;  // The end that opened the path makes the rails.
  if (!choose_pairs(ports.host)) return;
  for (std::size_t i = 0; i < pairs_.size() && !is_down(); ++i) pairs_[i].feed(proto::QueuePairEvent::kWant, now);
}

/// False, and the path is down: no two ports reach each other.
bool VerbsPath::choose_pairs(std::uint64_t peer_host) {
  std::vector<RailPort> ours;
  std::vector<bool> are_away;
  for (std::size_t lane = 0; lane < ports_.count(); ++lane) {
    ours.push_back(shared_.lanes[lane]->nic->rail_now());
    are_away.push_back(is_away(lane));
  }
  Result<std::vector<Rail>> rails = ports_.rails(std::move(ours), are_away, shared_.pairing);
  if (!rails) {
    go_down(rails.error());
    return false;
  }
  if (peer_host != 0 && peer_host == shared_.host) {
    std::erase_if(*rails, [this](const Rail& rail) { return shared_.lanes[rail.local]->nic->is_srd(); });
    if (rails->empty()) go_down(refuse_same_host(name_));
  }
  for (std::uint32_t i = 0; i < shared_.options.pairs; ++i) {
    for (const Rail& rail : *rails) {
      if (pairs_.size() == wire::kPairsMax) break;
      pairs_.add(make_pair(proto::QueuePairRole::kActive, pairs_.size(), rail.local, rail.remote));
    }
  }
  return !rails->empty();
}

std::unique_ptr<PathPair> VerbsPath::make_pair(proto::QueuePairRole role, std::size_t number, std::uint32_t lane,
                                               std::uint32_t remote) {
  const PairPlace place{.number = static_cast<std::uint8_t>(number),
                        .lane = lane,
                        .remote = remote,
                        .mbit_per_s = ports_.rail_speed(shared_.lanes[lane]->nic->port.mbit_per_s, remote)};
  PairOwner& owner = *this;
  return std::make_unique<PathPair>(shared_, owner, role, place);
}

void VerbsPath::hear(const wire::QueuePairConnect& message, Instant now) {
  if (!inbound_ || !ports_.admits(message.local, message.remote)) {
    go_down(Status(Code::kCorrupt, base::format("{} asked for a queue pair between ports that are not there", name_))
                .with_scope(Scope::kPath));
    return;
  }
  const auto passive = [&](std::size_t number) {
    return make_pair(proto::QueuePairRole::kPassive, number, message.remote, message.local);
  };
  // Those in between are asked for by messages of their own, which set their ports before anything is made.
  while (pairs_.size() <= message.pair) pairs_.add(passive(pairs_.size()));
  if (pairs_[message.pair].epoch() == 0) pairs_.replace(message.pair, passive(message.pair));
  pairs_[message.pair].on_connect(message, now);
}

void VerbsPath::hear(const wire::QueuePairAccept& message, Instant now) {
  if (!inbound_ && message.pair < pairs_.size()) pairs_[message.pair].on_accept(message, now);
}

void VerbsPath::hear(const wire::QueuePairReady& message, Instant now) {
  if (message.pair < pairs_.size()) pairs_[message.pair].on_ready_heard(message, now);
}

void VerbsPath::hear(const wire::QueuePairBroken& message, Instant now) {
  if (message.pair < pairs_.size()) pairs_[message.pair].on_broken(message, now);
}

void VerbsPath::reconnect(Instant now) {
  if (inbound_) return ask_for_attempts();
  for (std::size_t i = 0; i < pairs_.size() && !is_down(); ++i) pairs_[i].hurry(now);
}

/// The opener alone starts attempts. Nothing is asked while it has not taken what was said before.
void VerbsPath::ask_for_attempts() {
  for (std::size_t i = 0; i < pairs_.size() && !is_down() && outbox_.empty(); ++i) {
    const std::uint32_t epoch = pairs_[i].epoch();
    if (epoch > 0) say(wire::QueuePairReady{.pair = static_cast<std::uint8_t>(i), .epoch = epoch});
  }
}

QueuePairAttempt VerbsPath::attempt_of(const PathPair& pair, std::span<const Gid> peer) const {
  QueuePairAttempt attempt{.peer = peer, .further = pair.ways().in_vain(), .mtu_max = pair.ways().mtu_max()};
  if (!inbound_) return attempt;
  const auto peers = ports_.ways_of_peer(pair.remote(), pair.qp().nic().address().gids);
  attempt.further = pair.ways().in_vain_for_all(static_cast<std::uint32_t>(peers));
  return attempt;
}

/// A queue pair gets its receives before the peer can hear of it.
Status VerbsPath::make(PathPair& pair) {
  pair.ways().begin();
  const std::vector<Gid> peer = ports_.peer_gids(pair.remote(), inbound_, pair.peer().gid);
  HAWSER_TRY(pair.qp().make(pair.epoch(), shared_.rng, attempt_of(pair, peer)));
  if (messages_ != nullptr && is_first(pair)) HAWSER_TRY(messages_->post_receives(pair.qp(), pair.lane()));
  return open_immediates(pair);
}

void VerbsPath::before_reset(PathPair& pair) {
  QueuePair& qp = pair.qp();
  // Told before the queue pair's end is, in whatever way that will be: what landed must not be written again.
  if (state_ == PathState::kUp && qp.words_in().is_news()) {
    say(wire::ImmediatesCounted{.pair = pair.place().number, .epoch = qp.epoch(), .counted = qp.words_in().counted()});
    qp.words_in().told();
  }
  // Some of these were acknowledged, and the peer has not seen their words: the agent has to tell it.
  std::uint64_t last = 0;
  for (const std::uint64_t transfer : qp.words_out().uncounted()) {
    if (transfer != last) shared_.events.uncounted(this, transfer);
    last = transfer;
  }
  qp.words_out().forget_uncounted();
}

void VerbsPath::after_reset(PathPair& pair, std::vector<Flight> back, Instant now) {
  if (messages_ != nullptr && is_first(pair)) messages_->on_reset();
  Status worn;
  std::vector<Flight> lost;
  for (Flight& flight : back) {
    if (flight.immediate != 0 && flight.immediate <= pair.qp().words_out().counted()) {
      end(flight, Status());  // It had landed, and the target knows.
    } else if (!flight.failure.ok() && !flight.struck) {
      end(flight, flight.failure.with_peer(name_));
    } else if (flight.cancelled && flight.chunk.op == Operation::kRead) {
      end(flight, cancelled());  // Nothing of it can land at the peer.
    } else {
      if (flight.struck) worn = strikes_.strike(flight);
      lost.push_back(std::move(flight));
    }
  }
  pair.lost().add(std::move(lost), pair.qp().epoch(), now, shared_.options.patience);
  if (worn.ok()) return;
  go_down(link_failure("a queue pair broke at the same operation again and again")
              .because(pair.cause().ok() ? worn : pair.cause()));
}

void VerbsPath::on_fenced(PathPair& pair) {
  for (Flight& flight : pair.lost().take_all()) {
    if (flight.cancelled) {
      end(flight, cancelled());
    } else if (!flight.failure.ok()) {
      end(flight, flight.failure.with_peer(name_));
    } else {
      again_.push_back(std::move(flight));
    }
  }
}

void VerbsPath::on_ready(PathPair&) {
  ++ready_;
  held_back_ = false;
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

void VerbsPath::on_lost(PathPair& pair, bool has_worked, Instant now) {
  if (--ready_ == 0) lost_since_ = now;
  if (messages_ != nullptr && is_first(pair)) messages_->on_lost();
  if (has_worked || !pairs_.all_worn()) return;
  go_down(link_failure("queue pairs break as soon as they are ready").because(pair.cause()));
}

/// A path that never came up does not try for ever: the agent has other backends.
void VerbsPath::on_failed(PathPair& pair) {
  const bool all_failed =
      std::ranges::all_of(pairs_, [this](const auto& each) { return each->failures() > 0 && !has_more_ways(*each); });
  if (state_ != PathState::kConnecting || !all_failed || inbound_) return;
  go_down(link_failure("no queue pair could be connected").because(pair.why_not()));
}

bool VerbsPath::has_more_ways(const PathPair& pair) const {
  const Nic& nic = pair.qp().nic();
  return pair.ways().has_more(ports_.ways(pair.remote(), nic.address().gids, nic.port.netdev));
}

Status VerbsPath::link_failure(std::string_view what) const {
  return Status(Code::kDisconnected, base::format("{} to {}", what, name_))
      .with_scope(Scope::kPath)
      .with_advice("`hawser doctor` and `hawser topo` show the ports and their addresses; docs/rdma.md has the causes");
}

void VerbsPath::on_lane_fault(std::uint32_t lane, const Status& why, Instant now) {
  for (std::size_t i = 0; i < pairs_.size() && !is_down(); ++i) {
    if (pairs_[i].lane() == lane) pairs_[i].fault(why, now);
  }
}

bool VerbsPath::on_address_change(std::uint32_t lane, const Status& why, Instant now) {
  if (is_down()) return false;
  ports_.change();
  shared_.attention = true;
  const NicAddress address = shared_.lanes[lane]->nic->address();
  bool any = false;
  for (std::size_t i = 0; i < pairs_.size() && !is_down(); ++i) {
    PathPair& pair = pairs_[i];
    if (pair.lane() != lane) continue;
    pair.ways().forget();
    if (pair.qp().number() == 0 || pair.fits(address)) continue;
    pair.fault(why, now);
    any = true;
  }
  return any;
}

std::size_t VerbsPath::run_timers(Instant now) {
  std::size_t work = 0;
  for (std::size_t i = 0; i < pairs_.size() && !is_down(); ++i) {
    const std::vector<Flight> quiet = pairs_[i].lost().take_quiet(now);
    for (const Flight& flight : quiet) end(flight, cancelled());
    work += quiet.size() + pairs_[i].run_timers(now);
  }
  if (is_down()) return work;
  if (now >= deadline_) {
    go_down(Status(Code::kTimedOut, base::format("no queue pair to {} was ready in time", name_))
                .with_scope(Scope::kPath)
                .because(standing(now)));
  } else if (pairs_.is_stuck(now)) {
    // Other queue pairs are ready, but only a new one of this end makes sure that nothing of the old one can land.
    go_down(link_failure("a queue pair could not be made anew within `patience`").because(standing(now)));
  } else if (lost_since_ != Instant::max() && now >= lost_since_ + shared_.options.patience) {
    go_down(link_failure("no queue pair was ready again within `patience`").because(standing(now)));
  }
  return work;
}

Result<Binding*> VerbsPath::bind(const RemoteRegionRef& region) {
  HAWSER_TRY_ASSIGN(VerbsBinding* const bound, bindings_.bind(region, name_, [this](const VerbsBinding& binding) {
    return pairs_.may_reach(binding);
  }));
  return bound;
}

QueuePair::Staged VerbsPath::stage(const Chunk& chunk, const VerbsBinding& binding, Status* why) {
  const bool waits = chunk.priority == Priority::kBulk && chunk.bytes > kSmallChunk;
  std::uint64_t passed = 0;
  // The nearest one may have no room, or little under way in bytes and no request to spare: then the next has its turn.
  while (PathPair* pair = pairs_.best(chunk, binding, &passed)) {
    if (waits && pair->qp().bytes_posted() >= shared_.options.window) continue;
    const QueuePair::Staged staged = pair->qp().stage(chunk, binding.keys[pair->remote()], why);
    if (staged != QueuePair::Staged::kNoRoom) return staged;
  }
  return QueuePair::Staged::kNoRoom;
}

VerbsPath::Posted VerbsPath::post(const Chunk& chunk, bool is_cancelled) {
  const auto& binding = *static_cast<const VerbsBinding*>(chunk.target);
  const Rights need = chunk.op == Operation::kWrite ? Rights::kWrite : Rights::kRead;
  Status why;
  if (is_cancelled) {
    why = cancelled();
  } else if (ready_ > 0 && !pairs_.reaches(binding)) {
    why = Status(Code::kUnsupported, base::format("no port that {} has keys for is ready", name_))
              .with_scope(Scope::kPath)
              .with_buffer(BufferState::kUntouched);
  } else if (!allows(binding.rights, need)) {
    why = not_allowed("the region does not allow this operation");
  } else if (!fits(chunk, binding.size)) {
    why = not_allowed("a range lies outside the region");
  } else {
    switch (stage(chunk, binding, &why)) {
      case QueuePair::Staged::kYes:
        return Posted::kYes;
      case QueuePair::Staged::kNoRoom:
        return Posted::kNoRoom;
      case QueuePair::Staged::kRefused:
        break;
    }
  }
  end({.chunk = chunk, .cancelled = is_cancelled, .struck = false, .failure = {}, .immediate = 0}, why);
  return Posted::kEnded;
}

Submitted VerbsPath::submit(std::span<const Chunk> chunks, Instant now) {
  Submitted result;
  if (state_ != PathState::kUp) return result;
  held_back_ = ready_ == 0;
  if (held_back_ || !again_.empty()) chunks = {};
  for (const Chunk& chunk : chunks) {
    if (post(chunk, false) == Posted::kNoRoom) break;
    ++result.taken;
  }
  flush(now);
  if (result.taken > 0 && mtu_at_ == Instant::max()) watch_mtu(now);
  if (!awaited_.is_told()) tell_awaited(now);
  return result;
}

void VerbsPath::flush(Instant now) {
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    if (Status status = pairs_[i].qp().flush(); !status.ok()) pairs_[i].fault(status, now);
  }
}

std::size_t VerbsPath::post_again(Instant now) {
  std::size_t count = 0;
  while (!again_.empty() && ready_ > 0) {
    const Flight flight = again_.front();
    if (post(flight.chunk, flight.cancelled) == Posted::kNoRoom) break;
    again_.pop_front();
    ++count;
  }
  if (count > 0) flush(now);
  return count;
}

void VerbsPath::end(const Flight& flight, const Status& status) {
  const bool uncounted = flight.chunk.covered && flight.immediate == 0;
  if (status.ok()) {
    ++counts_.chunks;
    uncounted_ += uncounted;
    counted_out_ += flight.immediate != 0;
    (flight.chunk.op == Operation::kWrite ? counts_.bytes_out : counts_.bytes_in) += flight.chunk.bytes;
  }
  strikes_.forget(flight.chunk.cookie);
  shared_.events.chunk_done(this, flight.chunk.cookie, status, uncounted);
}

void VerbsPath::on_completion(std::uint32_t lane, const ibv_wc& wc, Instant now) {
  PathPair* const pair = pairs_.find(lane, wc.qp_num);
  if (pair == nullptr) return;
  const Completed completed = pair->qp().on_completion(wc);
  switch (completed.kind) {
    case Completed::Kind::kNothing:
      break;
    case Completed::Kind::kChunk:
      end(completed.flight, completed.flight.failure.ok() ? Status() : completed.flight.failure.with_peer(name_));
      break;
    case Completed::Kind::kProved:
      pair->feed(proto::QueuePairEvent::kProved, now);
      break;
    case Completed::Kind::kFault:
      pair->fault(completed.cause, now);
      break;
    case Completed::Kind::kSent:
    case Completed::Kind::kReceived:
      if (is_first(*pair)) on_message_completion(completed, now);
      break;
    case Completed::Kind::kImmediate:
      on_immediate(*pair, completed, now);
      break;
  }
  if (!is_down()) pair->settle(now);
}

void VerbsPath::cancel(std::uint64_t transfer) {
  shared_.attention = true;
  for (Flight& flight : again_) flight.cancelled |= flight.chunk.transfer == transfer;
  if (pairs_.cancel(transfer)) cancelled_.begin();
  // What waits has touched nothing that could still change: it ends now.
  std::erase_if(again_, [this](const Flight& flight) {
    if (flight.cancelled) end(flight, cancelled());
    return flight.cancelled;
  });
}

void VerbsPath::force_cancelled(Instant now) {
  if (!cancelled_.is_over(now)) return;
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    if (!pairs_[i].is_ready() || !pairs_[i].qp().has_cancelled()) continue;
    pairs_[i].fault(
        Status(Code::kCancelled, "an operation was cancelled and did not end by itself").with_scope(Scope::kPath), now);
  }
}

bool VerbsPath::is_awaited() const {
  return awaited_.agent_waits() || held_back_ || !again_.empty() || !pairs_.is_idle();
}

void VerbsPath::set_awaited(bool awaited, Instant now) {
  if (awaited_.set_agent_waits(awaited, now)) shared_.attention = true;
  if (awaited) tell_awaited(now);
}

void VerbsPath::tell_awaited(Instant now) {
  if (control_ == nullptr || is_down() || !awaited_.is_due(now) || !awaited_.look(is_awaited(), now)) return;
  shared_.attention = true;
  control_->set_awaited(awaited_.is_told(), now);
}

void VerbsPath::watch_mtu(Instant now) {
  mtu_at_ = now + kMtuEvery;
  shared_.attention = true;
}

void VerbsPath::look_at_mtu(Instant now) {
  mtu_at_ = Instant::max();
  bool is_busy = !again_.empty();
  for (std::size_t i = 0; i < pairs_.size() && !is_down(); ++i) {
    const QueuePair& qp = pairs_[i].qp();
    is_busy = is_busy || !pairs_[i].lost().empty();
    if (!pairs_[i].is_ready() || qp.is_idle()) continue;
    is_busy = true;
    qp.nic().refresh_mtu();
    const std::uint8_t most = qp.nic().address().mtu;
    if (qp.mtu() <= most) continue;
    pairs_[i].fault(
        Status(Code::kDisconnected, base::format("{}: its MTU shrank: packets of {} bytes leave it no more, {} at most",
                                                 qp.nic().describe(), 128u << qp.mtu(), 128u << most))
            .with_scope(Scope::kPath)
            .with_device(qp.nic().device.name),
        now);
  }
  if (is_busy && !is_down()) watch_mtu(now);
}

std::size_t VerbsPath::turn(Instant now) {
  if (is_down()) return 0;
  if (cancelled_.needs_look(now)) force_cancelled(now);
  if (now >= mtu_at_) look_at_mtu(now);
  if (is_down()) return 0;
  std::size_t work = run_timers(now);
  if (control_ != nullptr) outbox_.send_to(*control_);
  if (!again_.empty()) work += post_again(now);
  if (messages_ != nullptr && !is_down()) turn_messages(now);
  if (words_due_ && !is_down()) tell_counted();
  if (ports_.is_due() && !is_down() && outbox_.empty()) {
    ports_.told();
    say(own_ports());
  }
  return work;
}

Instant VerbsPath::next_deadline() const {
  if (is_down()) return Instant::max();
  Instant next =
      std::min({deadline_, cancelled_.next_deadline(), awaited_.next_look(), mtu_at_, pairs_.next_deadline()});
  if (lost_since_ != Instant::max()) next = std::min(next, lost_since_ + shared_.options.patience);
  return next;
}

void VerbsPath::go_down(const Status& why, bool refused) {
  if (is_down()) return;
  state_ = PathState::kDown;
  shared_.attention = true;
  HAWSER_LOG(shared_.context.log, kDebug, "verbs path to {} ended: {}", name_, why.to_string());
  const Status told = why.with_peer(name_);
  for (const auto& pair : pairs_) {
    pair->close();
    std::ranges::move(pair->lost().take_all(), std::back_inserter(again_));
  }
  const Scope scope = why.scope() == Scope::kPeer ? Scope::kPeer : Scope::kPath;
  const Status chunk_status = chunk_status_of(told, scope, name_);
  for (const Flight& flight : again_) end(flight, flight.cancelled ? cancelled() : chunk_status);
  again_.clear();
  outbox_.clear();
  ready_ = 0;
  if (is_known()) shared_.events.path_down(this, told, refused);
}

void VerbsPath::open_messages() {
  const std::uint32_t slots = shared_.options.pair.messages;
  if (slots == 0) return;
  Result<std::unique_ptr<Messages>> opened = Messages::open(shared_.lanes, slots, receives(), shared_.events, this);
  if (!opened) {
    HAWSER_LOG(shared_.context.log, kWarn, "verbs: messages to {} go by the control stream alone: {}", name_,
               opened.error().to_string());
    return;
  }
  messages_ = *std::move(opened);
}

bool VerbsPath::send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) {
  if (state_ != PathState::kUp || !outbox_.empty()) return false;
  if (messages_ != nullptr) return send_numbered(link, head, body);
  message_head_.resize(1 + head.size());
  message_head_[0] = std::byte{wire::kAgentMessage};
  std::ranges::copy(head, message_head_.begin() + 1);
  return control_->send(link, message_head_, body);
}

bool VerbsPath::send_numbered(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) {
  PathPair* const first = pairs_.ready_first();
  Status failed;
  const bool taken = messages_->send(first == nullptr ? nullptr : &first->qp(), first == nullptr ? 0 : first->lane(),
                                     *control_, link, head, body, &failed);
  // The adapter is at fault, not the caller: what was taken is sent again.
  if (!failed.ok()) {
    message_fault_ = failed;
    shared_.attention = true;
  }
  return taken;
}

void VerbsPath::hear(const wire::MessagesReceived& told, Instant) {
  if (messages_ == nullptr) return;
  if (const Status status = messages_->on_told(told.received); !status.ok()) go_down(status);
}

std::size_t VerbsPath::on_agent_message(std::span<const std::byte> bytes, Instant now) {
  if (state_ != PathState::kUp) {
    go_down(Status(Code::kCorrupt, "the peer sent a message before the path was up").with_scope(Scope::kPath));
    return 0;
  }
  const bool numbered = bytes[0] == std::byte{wire::kNumberedMessage};
  if (numbered != (messages_ != nullptr)) {
    go_down(Status(Code::kCorrupt, "the peer's messages are not numbered as was agreed").with_scope(Scope::kPath));
    return 0;
  }
  if (!numbered) return 1;
  const Result<bool> next = messages_->on_stream(bytes);
  if (!next) {
    go_down(next.error().with_scope(Scope::kPath));
    return 0;
  }
  repost(now);
  if (messages_->has_work()) shared_.attention = true;
  return *next ? wire::kMessageHeadSize : 0;
}

void VerbsPath::on_message_completion(const Completed& completed, Instant now) {
  if (messages_ == nullptr) return;
  if (completed.kind == Completed::Kind::kSent) {
    messages_->on_sent(completed.place);
    return;
  }
  if (const Status status = messages_->on_receive(completed.place, completed.bytes); !status.ok()) {
    go_down(status.with_scope(Scope::kPath));
    return;
  }
  repost(now);
}

void VerbsPath::repost(Instant now) {
  const Status status = messages_->repost(pairs_[0].qp(), pairs_[0].lane());
  if (!status.ok()) pairs_[0].fault(status, now);
}

void VerbsPath::turn_messages(Instant now) {
  if (!message_fault_.ok()) pairs_[0].fault(std::exchange(message_fault_, Status()), now);
  if (is_down() || control_ == nullptr || state_ != PathState::kUp) return;
  messages_->deliver();
  repost(now);
  if (is_down() || !outbox_.empty() || !messages_->replay(*control_) || !messages_->is_word_due()) return;
  const std::string word = wire::encode(wire::MessagesReceived{.received = messages_->received()});
  if (control_->send(Priority::kCritical, std::as_bytes(std::span(word)), {})) messages_->take_received();
}

/// The receives are there before the peer can hear of the queue pair. Where messages have theirs on it, those were
/// posted together.
Status VerbsPath::open_immediates(PathPair& pair) {
  if (arrivals_.credits() == 0) return {};
  pair.qp().begin_immediates(receives(), arrivals_.credits());
  if (messages_ != nullptr && is_first(pair)) return {};
  for (std::uint32_t i = 0; i < receives(); ++i) HAWSER_TRY(pair.qp().post_receive(0, {}));
  return {};
}

void VerbsPath::on_immediate(PathPair& pair, const Completed& completed, Instant now) {
  proto::ImmediateCounter& words = pair.qp().words_in();
  if (const Status status = arrivals_.read(words, completed.word); !status.ok()) return go_down(status);
  tell_arrivals();
  // The receive is back before the sender hears of it.
  if (messages_ != nullptr && is_first(pair)) {
    if (const Status status = messages_->on_immediate(completed.place); !status.ok()) return go_down(status);
    repost(now);
  } else if (const Status status = pair.qp().post_receive(0, {}); !status.ok()) {
    return pair.fault(status, now);
  }
  if (is_down() || state_ != PathState::kUp || !words.is_word_due()) return;
  words_due_ = shared_.attention = true;
}

void VerbsPath::tell_arrivals() {
  if (state_ != PathState::kUp) return;
  arrivals_.tell(
      [this](std::uint64_t transfer, std::uint32_t chunk) { shared_.events.arrival(this, transfer, chunk); });
}

void VerbsPath::tell_counted() {
  if (control_ == nullptr || state_ != PathState::kUp || !outbox_.empty()) return;
  for (const auto& pair : pairs_) {
    proto::ImmediateCounter& words = pair->qp().words_in();
    if (!words.is_word_due()) continue;
    const std::string word = wire::encode(
        wire::ImmediatesCounted{.pair = pair->place().number, .epoch = pair->qp().epoch(), .counted = words.counted()});
    if (!control_->send(Priority::kCritical, std::as_bytes(std::span(word)), {})) return;
    words.told();
  }
  words_due_ = false;
}

void VerbsPath::hear(const wire::ImmediatesCounted& told, Instant) {
  if (told.pair >= pairs_.size()) return;
  PathPair& pair = pairs_[told.pair];
  if (told.epoch == pair.qp().epoch()) {
    if (const Status status = pair.qp().words_out().on_counted(told.counted); !status.ok()) return go_down(status);
  }
  // What the target has told of has landed, though its acknowledgement was lost with the queue pair.
  for (const Flight& flight : pair.lost().take_counted(told.epoch, told.counted)) end(flight, Status());
}

Result<QueuePairView> VerbsPath::queue_pair(const Binding& target, const Piece& piece) const {
  const auto& binding = static_cast<const VerbsBinding&>(target);
  std::uint64_t passed = 0;
  Status refused;
  Chunk wanted;
  if (piece.size > 0) wanted.pieces = {&piece, 1};
  while (const PathPair* pair = pairs_.best(wanted, binding, &passed)) {
    QueuePairView view;
    view.state = counters_of(*pair);
    view.remote_key = binding.keys[pair->remote()].rkey;
    view.remote_address = binding.keys[pair->remote()].iova + piece.remote;
    Status status = pair->qp().view(piece, &view);
    if (status.ok()) return view;
    refused = std::move(status);
  }
  if (!refused.ok()) return refused;
  Status none(Code::kNotFound, base::format("no queue pair to {} is ready", name_));
  for (const auto& pair : pairs_) none = pair->cause().ok() ? none : none.because(pair->cause());
  return none.with_scope(Scope::kPath).with_peer(name_);
}

PathCounters VerbsPath::counters() const {
  PathCounters counters = counts_;
  counters.peer = name_;
  counters.backend = "verbs";
  counters.state = state_ == PathState::kConnecting ? "connecting" : state_ == PathState::kUp ? "up" : "down";
  if (control_ != nullptr) {
    const PathCounters control = control_->counters();
    counters.messages_in = control.messages_in;
    counters.messages_out = control.messages_out;
  }
  if (messages_ != nullptr) {
    counters.messages_in += messages_->received_count();
    counters.messages_out += messages_->sent_count();
  }
  for (const auto& pair : pairs_) {
    counters.epochs += pair->epoch();
    counters.queue_pairs.push_back(counters_of(*pair));
  }
  return counters;
}

Status VerbsPath::condition(Instant now) const {
  const bool is_idle = state_ == PathState::kUp && !is_awaited() && outbox_.empty();
  return is_idle || is_down() ? Status() : standing(now);
}

void VerbsPath::describe_waits(const WaitVisitor& visitor) const {
  const auto tell = [&](std::string_view what, std::size_t count, Instant since, Instant until = Instant::max()) {
    visitor({.who = "verbs", .what = what, .peer = name_, .count = count, .since = since, .until = until});
  };
  if (state_ == PathState::kConnecting && pairs_.empty()) tell("the device ports", 1, Instant::min(), deadline_);
  if (is_down() || pairs_.empty()) return;
  const std::size_t not_ready = pairs_.size() - ready_;
  const Instant since = lost_since_ == Instant::max() ? Instant::min() : lost_since_;
  if (not_ready > 0) tell("queue pairs to be ready", not_ready, since, deadline_);
  const std::size_t again = again_.size() + pairs_.lost();
  if (again > 0) tell("a queue pair to post to again", again, since);
  if (outbox_.is_full()) tell("room on the control stream", 1, Instant::min());
}

/// All that is known of its queue pairs and of the peer.
Status VerbsPath::standing(Instant now) const {
  std::string text = base::format("verbs to {}", name_);
  for (std::size_t i = 0; i < pairs_.size(); ++i) text += (i == 0 ? ": " : "; ") + condition_of(pairs_[i]);
  if (pairs_.empty()) text += ports_.is_known() ? ": no queue pair was asked for" : ": the peer has not told its ports";
  const std::size_t lost = again_.size() + pairs_.lost();
  if (lost > 0) text += base::format("; {} waits to be posted again", lost);
  if (outbox_.is_full()) text += "; the control stream takes no more";
  if (heard_ != Instant::min()) {
    const auto ago = std::chrono::duration_cast<std::chrono::milliseconds>(now - heard_);
    text += base::format("; the peer last said {} on the control stream, {} ms ago", last_word_, ago.count());
  }
  Status status = Status(Code::kTimedOut, std::move(text)).with_scope(Scope::kPath);
  for (const auto& pair : pairs_) {
    if (!pair->cause().ok() && !pair->is_ready()) status = status.because(pair->why_not());
  }
  return control_ == nullptr ? status : status.because(control_->condition(now));
}

std::string VerbsPath::describe() const {
  std::string text = base::format("verbs {} {}", inbound_ ? "from" : "to", name_);
  for (const auto& pair : pairs_) text += ", " + verbs::describe(*pair);
  text += base::format(", {} chunks, {} bytes out, {} bytes in", counts_.chunks, counts_.bytes_out, counts_.bytes_in);
  if (messages_ != nullptr) {
    text += base::format(", {} messages sent and {} received by queue pair", messages_->sent_count(),
                         messages_->received_count());
  }
  for (const auto& lane : shared_.lanes) {
    text += base::format(", {}: {}", lane->nic->device.name, lane->nic->memory.describe());
  }
  if (arrivals_.credits() > 0) {
    text += base::format(", {} chunks told by immediates ({} without, none was left), {} of the peer's", counted_out_,
                         uncounted_, arrivals_.count());
  }
  return is_down() ? text + ", down" : text;
}

}  // namespace hawser::backend::verbs
