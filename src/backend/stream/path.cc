#include "backend/stream/path.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "backend/hello_identity.h"
#include "base/bytes.h"
#include "base/format.h"
#include "base/id128.h"
#include "base/planted.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::backend::stream {
namespace {

/// How long goodbyes may take to leave.
constexpr Duration kClosePatience = std::chrono::milliseconds(500);
/// How long an answer is waited for when nobody set a deadline.
constexpr Duration kHelloPatience = std::chrono::seconds(5);
/// From an opener's hello, or proof, to its first message.
constexpr Duration kFirstWordPatience = std::chrono::seconds(5);
/// How long messages may come after the goodbye that they were sent before, and how often each turn reads.
constexpr Duration kHearPatience = std::chrono::milliseconds(500);
constexpr int kHearSteps = 4;
/// Turns after which acknowledgements stop waiting for company.
constexpr unsigned kAckTurns = 8;

std::uint64_t sum(std::span<const iovec> parts) {
  std::uint64_t bytes = 0;
  for (const iovec& part : parts) bytes += part.iov_len;
  return bytes;
}

}  // namespace

StreamPath::StreamPath(PortShared& shared)
    : shared_(shared),
      hellos_({.context = shared.context,
               .options = shared.options,
               .network = shared.network,
               .terms = terms_,
               .peer = peer_,
               .name = name_}) {}

StreamPath::~StreamPath() = default;

PathState StreamPath::state() const {
  switch (phase_) {
    case Phase::kOpening:
      return PathState::kConnecting;
    case Phase::kUp:
      return PathState::kUp;
    default:
      return PathState::kDown;
  }
}

Result<Binding*> StreamPath::bind(const RemoteRegionRef& region) {
  if (phase_ != Phase::kUp) {
    return Status(Code::kDisconnected, base::format("the path to {} is not up", name_))
        .with_peer(name_)
        .with_scope(Scope::kPath);
  }
  const bool is_reached = region.device.kind == DeviceKind::kHost || region.device.kind == DeviceKind::kFile;
  if (!is_reached) {
    return Status(Code::kUnsupported,
                  base::format("{} moves host memory and files only; region #{} of {} is on a device",
                               shared_.options.backend, region.index, name_))
        .with_peer(name_);
  }
  return machine_->bind(region);
}

void StreamPath::unbind(std::uint32_t index, std::uint32_t generation) {
  if (phase_ == Phase::kUp) machine_->unbind(index, generation);
}

Submitted StreamPath::submit(std::span<const Chunk> chunks, Instant now) {
  static_cast<void>(now);
  if (phase_ != Phase::kUp) return {};
  activate();
  return {.taken = machine_->submit(chunks), .done = 0};
}

bool StreamPath::send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) {
  if (phase_ != Phase::kUp) return false;
  if (!base::planted(base::Planted::kWakeupLost)) activate();
  return machine_->send(link, head, body);
}

bool StreamPath::send_aside(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) {
  if (phase_ != Phase::kUp) return false;
  if (!base::planted(base::Planted::kWakeupLost)) activate();
  return machine_->send(link, head, body, Haste::kAside);
}

bool StreamPath::send_first(std::span<const std::byte> head, std::span<const std::byte> body) {
  if (phase_ != Phase::kUp) return false;
  if (!base::planted(base::Planted::kWakeupLost)) activate();
  return machine_->send_first(head, body);
}

bool StreamPath::send_last(std::span<const std::byte> head, std::span<const std::byte> body) {
  if (phase_ != Phase::kUp) return false;
  activate();
  return machine_->send_last(head, body);
}

unsigned StreamPath::queue_of(wire::Link link) const {
  return machine_.has_value() ? machine_->stream_for(link) : Path::queue_of(link);
}

void StreamPath::cancel(std::uint64_t transfer) {
  if (phase_ != Phase::kUp && phase_ != Phase::kHearing) return;
  activate();
  machine_->cancel(transfer);
}

void StreamPath::set_awaited(bool awaited, Instant now) {
  awaited_ = awaited;
  if (phase_ != Phase::kUp || base::planted(base::Planted::kWakeupLost)) return;
  watch_->set_busy(awaited_ || machine_->busy(), now);
  // It may be idle and not turn before its next heartbeat, which is due earlier now.
  shared_.next_due = std::min(shared_.next_due, next_deadline());
}

PathCounters StreamPath::counters() const {
  PathCounters counters;
  if (machine_.has_value()) {
    counters = machine_->counts();
    counters.bytes_in = machine_->bytes_in();
    counters.bytes_out = machine_->bytes_out();
  }
  counters.peer = name_;
  counters.backend = shared_.options.backend;
  counters.state = phase_ == Phase::kOpening ? "connecting" : phase_ == Phase::kUp ? "up" : "down";
  return counters;
}

std::string StreamPath::describe() const {
  std::string text = base::format("{} {} {}", shared_.options.backend, terms_.is_inbound ? "from" : "to", name_);
  text += streams_.describe();
  if (identity_.is_on()) text += base::format(", {}", identity_.describe());
  if (!places_note_.empty()) text += base::format(", not at {}", places_note_);
  if (machine_.has_value()) {
    text += base::format(", {} chunks, {} bytes out, {} bytes in", machine_->counts().chunks, machine_->bytes_out(),
                         machine_->bytes_in());
  }
  return phase_ == Phase::kDown ? text + ", down" : text;
}

Status StreamPath::condition(Instant now) const {
  if (phase_ == Phase::kOpening) return Status(Code::kTimedOut, base::format("{} is being connected to", name_));
  if (phase_ != Phase::kUp) return Status();
  std::string text = base::format("the path to {} has {} chunks of {} bytes in flight", name_,
                                  machine_->chunks_in_flight(), machine_->bytes_in_flight());
  if (!machine_->last_full().empty()) text += base::format(", and is full: {}", machine_->last_full());
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now - watch_->last_heard()).count();
  text += base::format("; the peer's last word came {} ms ago", ms);
  text += streams_.condition();
  return Status(Code::kTimedOut, text).with_peer(name_);
}

void StreamPath::describe_waits(const WaitVisitor& visitor) const {
  const auto tell = [&](std::string_view what, Instant since, Instant until) {
    visitor({.who = shared_.options.backend, .what = what, .peer = name_, .since = since, .until = until});
  };
  switch (phase_) {
    case Phase::kOpening:
      return tell(terms_.is_inbound ? "the rest of the hello" : "the hello", began_, deadline_);
    case Phase::kUp:
      if (machine_->has_unsent()) tell("room on the connection", Instant::min(), Instant::max());
      if (watch_->is_silent()) tell("a sign of life", watch_->last_heard(), watch_->fails_at());
      return;
    case Phase::kHearing:
      return tell("late messages", Instant::min(), deadline_);
    case Phase::kAsking:
      return tell("the listener", Instant::min(), Instant::max());
    case Phase::kClosing:
      return tell("room for the goodbye", Instant::min(), deadline_);
    case Phase::kDown:
      return;
  }
}

void StreamPath::say_goodbye(Code code, std::string_view reason) {
  if (phase_ != Phase::kUp) return;
  machine_->bye(code, reason);
  static_cast<void>(send_last_words());
}

void StreamPath::begin_close(Instant now) {
  if (phase_ == Phase::kUp) {
    machine_->bye(Code::kDisconnected, "the agent is closing");
    phase_ = Phase::kClosing;
    streams_.stop_landing();
    deadline_ = now + kClosePatience;
    activate();
  } else if (phase_ == Phase::kHearing) {
    take_goodbye(*machine_->take_news(true).bye);
  } else if (phase_ == Phase::kAsking) {
    go_down(lost_why_);
  } else if (phase_ == Phase::kOpening) {
    go_down(Status(Code::kDisconnected, "this agent is closing").with_peer(name_));
  }
}

void StreamPath::go_down(const Status& why, bool abort) {
  if (phase_ == Phase::kDown) return;
  phase_ = Phase::kDown;
  seat_.end();
  is_held_ = is_held_ && shared_.events.is_held(this);  // What came in this turn may have told of it.
  shared_.lobby.leave(this);
  streams_.close_all(abort);
  question_.reset();
  search_.reset();
  HAWSER_LOG(shared_.context.log, kDebug, "{} path to {} ended: {}", shared_.options.backend, name_, why.to_string());
  if (machine_.has_value()) machine_->fail(why);
  // Of one that is held the queue only forgets that it is there.
  if (told_up_ || !terms_.is_inbound) shared_.events.path_down(this, why, is_refused_elsewhere_ && !told_up_);
  if (!is_known()) shared_.has_silent_dead = true;
}

bool StreamPath::region_quiet(std::uint32_t index, std::uint32_t generation) {
  if (!machine_.has_value() || phase_ == Phase::kDown) return true;
  activate();
  return machine_->region_quiet(index, generation);
}

Instant StreamPath::next_deadline() const {
  switch (phase_) {
    case Phase::kOpening:
      return search_ != nullptr ? std::min(streams_[0].deadline, search_->next_deadline()) : streams_[0].deadline;
    case Phase::kUp:
      if (base::planted(base::Planted::kTimerForgotten)) return Instant::max();
      return std::min({watch_->next_timeout(), quiet_by_, deadline_, identity_.next(), streams_.next_deadline()});
    case Phase::kHearing:
      return std::min(deadline_, quiet_by_);
    case Phase::kAsking:
      return question_->next();
    case Phase::kClosing:
      return deadline_;
    case Phase::kDown:
      break;
  }
  return Instant::max();
}

bool StreamPath::may_sleep() const {
  if (phase_ == Phase::kDown) return true;
  if (phase_ == Phase::kAsking) return question_->has_asked();  // The port turns it when its next question is due.
  if (phase_ == Phase::kHearing) return hears_nothing();
  if (phase_ == Phase::kUp && (machine_->has_acks() || machine_->awaits_poll() || has_streams_to_open())) return false;
  return streams_.may_sleep(machine_.has_value() ? &*machine_ : nullptr);
}

bool StreamPath::hears_nothing() const {
  return deadline_ != Instant::max() && !machine_->awaits_poll() && streams_.hears_nothing(*machine_);
}

bool StreamPath::wants_turns() const { return !may_sleep() || streams_.is_hot(); }

void StreamPath::on_ready(StreamOwner& owner) {
  // Until the hellos are through, being writable is news, too: the stream is connected.
  if (streams_[owner.index].shake != nullptr) owner.readable = true;
  activate();
}

void StreamPath::activate() {
  if (is_active) return;
  is_active = true;
  shared_.active.push_back(this);
}

// How it comes up.

Status StreamPath::open(const PathTarget& target, Instant now) {
  HAWSER_TRY_ASSIGN(std::vector<std::string> places,
                    shared_.network.candidates(target.address, !target.admission.is_zero()));
  name_ = target.peer.empty() ? base::shown(target.address) : std::string(target.peer);
  peer_.name = target.peer;
  terms_.expects = target.incarnation;
  terms_.supersedes = target.supersedes;
  terms_.known = {.secret = target.admission, .key = target.public_key};
  terms_.session = {shared_.rng.u64(), shared_.rng.u64() | 1};
  terms_.token = base::random_id128();
  terms_.streams = shared_.options.connections;
  streams_.set_count(terms_.streams);
  began_ = now;
  deadline_ = target.deadline == Instant::max() ? now + kHelloPatience : target.deadline;
  places_note_ = shared_.network.left_out(target.address);
  search_owner_ = StreamOwner{.path = this};
  search_ = std::make_unique<PlaceSearch>(shared_.network, &search_owner_,
                                          PlaceSearch::Target{.places = std::move(places),
                                                              .left_out = places_note_,
                                                              .is_here = shared_.network.is_here(target.address),
                                                              .known = terms_.known},
                                          now, deadline_);
  activate();
  try_places(now);
  return Status();
}

void StreamPath::try_places(Instant now) {
  if (std::unique_ptr<Stream> stream = search_->turn(now)) {
    auto shake = std::make_unique<Handshake>(std::move(stream), versions_of(shared_.context.identity),
                                             shared_.context.authenticator);
    adopt(0, std::move(shake), search_->hello_deadline());
  } else if (search_->is_over()) {
    const PlaceSearch::Verdict verdict = search_->verdict(name_);
    is_refused_elsewhere_ = verdict.is_refused_elsewhere;
    go_down(verdict.why.with_peer(name_));
  }
}

void StreamPath::reject_place(const Status& why, PlaceSearch::Found found, Instant now) {
  HAWSER_LOG(shared_.context.log, kDebug, "{}: {} is not reached at {}: {}", shared_.options.backend, name_,
             search_->place(), why.to_string());
  search_->reject(why, found, now);
  try_places(now);
}

void StreamPath::adopt(unsigned index, std::unique_ptr<Handshake> shake, Instant deadline) {
  streams_.adopt(index, std::move(shake), deadline);
  activate();
}

void StreamPath::accept(std::unique_ptr<Handshake> shake, bool is_known_peer, PeerSeat seat, Instant now) {
  seat_ = std::move(seat);
  const wire::Hello& hello = shake->hello();
  is_known_peer_ = is_known_peer;
  terms_.is_inbound = true;
  terms_.session = hello.session;
  terms_.token = hello.token;
  terms_.supersedes = hello.supersedes;
  terms_.streams = hello.streams;
  streams_.set_count(terms_.streams);
  peer_ = identity_of(hello);
  learn_identity(shake->take_identity(), now);
  if (shared_.network.is_beside(shake->stream(), hello.listen)) asks_at_ = hello.listen;
  began_ = now;
  deadline_ = now + kHelloPatience;
  adopt(0, std::move(shake), deadline_);
}

Status StreamPath::can_attach(unsigned index) const {
  bool fits = phase_ == Phase::kUp && index < streams_.count() && !streams_.is_there(index);
  if (phase_ == Phase::kUp && index < kAllStreamsMax && is_link_stream(index) && may_have_link_streams()) {
    fits = has_own_stream(link_of(index)) && !streams_.is_there(index);
  }
  return fits ? Status() : Status(Code::kInvalid, base::format("the session has no place for a stream {}", index));
}

void StreamPath::attach(std::unique_ptr<Handshake> shake, Instant now) {
  const unsigned index = shake->hello().stream;
  adopt(index, std::move(shake), now + kHelloPatience);
}

void StreamPath::learn_identity(ShownIdentity shown, Instant now) {
  if (shown.peer == nullptr) return;
  const identity::Speaker self = terms_.is_inbound ? identity::Speaker::kAcceptor : identity::Speaker::kOpener;
  identity_ = IdentityWatch(*shared_.context.authenticator, std::move(shown), self, now);
}

std::size_t StreamPath::turn_opening(Instant now) {
  if (streams_[0].shake == nullptr) try_places(now);
  if (streams_[0].shake != nullptr) turn_shake(0, now);
  return 1;
}

void StreamPath::turn_shake(unsigned index, Instant now) {
  PathStreams::Lane& lane = streams_[index];
  lane.owner.readable = false;
  const Status status = hellos_.turn(*lane.shake, index, lane.deadline, now);
  if (status.ok() && !hellos_.is_through(*lane.shake)) return;
  if (!status.ok()) {
    shake_failed(index, status, now);
    return;
  }
  if (index == 0 && !terms_.is_inbound) {
    peer_ = identity_of(lane.shake->hello());
    learn_identity(lane.shake->take_identity(), now);
  }
  streams_.settle(index);
  if (index == 0) {
    come_up(now);
  } else {
    machine_->open_stream(index);
  }
  if (phase_ == Phase::kUp) streams_.land(index, *machine_);
}

void StreamPath::shake_failed(unsigned index, const Status& why, Instant now) {
  PathStreams::Lane& lane = streams_[index];
  const bool answered = lane.shake->heard() && lane.shake->misfit().ok();
  const bool is_misfit = lane.shake->heard() && !answered;
  const wire::Hello hello = answered ? lane.shake->hello() : wire::Hello();
  lane.shake->stream().close(true);
  lane.shake.reset();
  lane.deadline = Instant::max();
  if (index > 0) {
    // The path does without; stream 0 carries bulk if none of the others came up, and messages of the link.
    HAWSER_LOG(shared_.context.log, kWarn, "stream {} to {} did not open: {}", index, name_, why.to_string());
    return;
  }
  const bool is_proven = !hellos_.is_doubted();
  if (terms_.is_inbound || (answered && hellos_.is_the_peer(hello) && is_proven)) {
    go_down(why.with_peer(name_));
    return;
  }
  PlaceSearch::Found found = PlaceSearch::Found::kNobody;
  if (answered && hello.name == peer_.name && is_proven) found = PlaceSearch::Found::kYounger;
  if (is_misfit && is_proven) found = PlaceSearch::Found::kMisfit;
  reject_place(why, found, now);
}

// What explain and the log say of the places: where the peer was reached, and which others led elsewhere or nowhere.
void StreamPath::note_places(Instant now) {
  place_ = search_->place();
  places_note_ = search_->others(now);
  search_.reset();
  if (places_note_.empty()) return;
  HAWSER_LOG(shared_.context.log, kInfo, "{}: {} is reached at {}, not at {}", shared_.options.backend, name_, place_,
             places_note_);
}

/// What the peer that this agent looked for has proven.
PeerClaim StreamPath::claim() const {
  return {.incarnation = peer_.incarnation,
          .public_key = peer_.public_key,
          .name = peer_.name,
          .identity = identity_.peer_id(),
          .is_key_proven = streams_[0].stream->cover() == Cover::kTls && shared_.context.security != Security::kNone};
}

void StreamPath::come_up(Instant now) {
  phase_ = Phase::kUp;
  shared_.parts.resize(kPartsMax);
  name_ = peer_.name;
  if (identity_.is_on()) {
    HAWSER_LOG(shared_.context.log, kInfo, "{}: {} has proven to be {}", shared_.options.backend, name_,
               identity_.describe());
  }
  if (search_ != nullptr) note_places(now);
  if (seat_.account() == nullptr) seat_ = shared_.context.guard->seat(claim());
  is_held_ = terms_.is_inbound && !is_known_peer_;
  deadline_ = is_held_ ? now + kFirstWordPatience : Instant::max();
  machine_.emplace(shared_.context.regions, shared_.events, this,
                   MachineOptions{.peer = name_,
                                  .streams = streams_.count(),
                                  .small_max = shared_.options.small_max,
                                  .has_identity = identity_.is_on(),
                                  .is_apart = may_have_link_streams(),
                                  .account = seat_.account()},
                   &shared_.files);
  watch_.emplace(
      PeerWatch::Options{
          .heartbeat = shared_.context.heartbeat, .patience = shared_.context.peer_timeout, .is_driven = peer_.driven},
      now);
  told_up_ = true;
  shared_.events.path_up(this, &peer_, terms_.session, terms_.is_inbound, terms_.supersedes, is_held_);
  if (!terms_.is_inbound) open_further(now);
}

void StreamPath::open_further(Instant now) {
  for (unsigned index = 1; index < streams_.count(); ++index) open_further_one(index, now);
}

void StreamPath::open_further_one(unsigned index, Instant now) {
  auto stream = shared_.network.connect(place_, terms_.known);
  if (!stream) {
    HAWSER_LOG(shared_.context.log, kWarn, "stream {} to {} did not open: {}", index, name_,
               stream.error().to_string());
    return;
  }
  auto shake = std::make_unique<Handshake>(*std::move(stream), versions_of(shared_.context.identity),
                                           shared_.context.authenticator);
  adopt(index, std::move(shake), now + kHelloPatience);
}

/// The first message of a link, in whichever direction, has its opener open the link's stream.
void StreamPath::open_link_streams(Instant now) {
  for (std::uint32_t links = machine_->take_unopened(); links != 0; links &= links - 1) {
    open_further_one(kStreamsMax + static_cast<unsigned>(std::countr_zero(links)), now);
  }
}

// At work: bytes in bounded steps, stream 0 first.

std::size_t StreamPath::turn(Instant now, Share& share) {
  switch (phase_) {
    case Phase::kOpening:
      return turn_opening(now);
    case Phase::kUp:
      return turn_up(now, share);
    case Phase::kHearing:
      return turn_hearing(now);
    case Phase::kAsking:
      return turn_asking(now);
    case Phase::kClosing:
      return turn_closing(now);
    case Phase::kDown:
      break;
  }
  return 0;
}

std::size_t StreamPath::turn_up(Instant now, Share& share) {
  watch_->begin_turn();
  if (Status status = machine_->begin_turn(); !status.ok()) {
    go_down(status);
    return 1;
  }
  std::size_t work = move_control(now, share);
  for (unsigned index = 1; index < streams_.count() && phase_ == Phase::kUp; ++index) {
    if (streams_[index].shake != nullptr) turn_shake(index, now);
  }
  if (phase_ == Phase::kUp && has_streams_to_open()) open_link_streams(now);
  if (phase_ == Phase::kUp && streams_.has_links()) work += move_links(now, share, true);
  if (phase_ != Phase::kUp) return work + 1;
  if (machine_->moves_bulk()) shared_.pace.note_bulk(now);
  const bool small = machine_->take_small();
  if (small) shared_.pace.note_small(now);
  // What a small operation brought is answered first; but not for ever.
  skipped_bulk_ = small && !shared_.events.empty() && !skipped_bulk_;
  if (!skipped_bulk_) work += move_bulk(now, share);
  if (!skipped_bulk_ && phase_ == Phase::kUp && streams_.has_links()) work += move_links(now, share, false);
  if (phase_ == Phase::kUp && machine_->has_news()) answer_news(now);
  if (phase_ == Phase::kUp && machine_->awaits_words()) begin_hearing();
  if (phase_ == Phase::kUp && is_held_) watch_opener(now);
  if (phase_ == Phase::kUp && now >= identity_.next()) watch_identity(now);
  if (phase_ == Phase::kUp) watch_peer(now);
  if (phase_ == Phase::kUp) watch_memory(now);
  return work;
}

std::size_t StreamPath::move_control(Instant now, Share& share) {
  const std::uint64_t step = streams_.count() == 1 ? std::min(share.step, kControlStep) : kControlStep;
  if (machine_->has_acks() && ++ack_turns_ >= kAckTurns) machine_->flush();
  const std::size_t sent = send_on(0, step);
  if (phase_ != Phase::kUp) return sent;
  const std::size_t got = receive_on(0, step);
  streams_[0].note_progress(sent + got, now);
  if (phase_ != Phase::kUp || got > 0) return sent + got;
  std::size_t acked = 0;
  if (machine_->has_acks()) {  // Nothing else to do: acknowledgements go out alone.
    machine_->flush();
    acked = send_on(0, step);
  }
  return sent + acked;
}

/// Urgent links move as much as stream 0 may, those of bulk have their part in the share of it.
std::size_t StreamPath::move_links(Instant now, Share& share, bool is_urgent) {
  std::size_t work = 0;
  streams_.each_link([&](unsigned stream, PathStreams::Lane& lane) {
    if ((link_of(stream).priority() != Priority::kBulk) != is_urgent || phase_ != Phase::kUp) return;
    if (lane.shake != nullptr) return turn_shake(stream, now);
    const std::uint64_t step = is_urgent ? kControlStep : std::min(share.step, share.left);
    if (step == 0) return;
    std::size_t moved = send_on(stream, step);
    if (phase_ == Phase::kUp) moved += receive_on(stream, step);
    if (!is_urgent) share.left -= std::min<std::uint64_t>(share.left, moved);
    streams_[stream].note_progress(moved, now);
    work += moved;
  });
  return work;
}

std::size_t StreamPath::move_bulk(Instant now, Share& share) {
  std::size_t work = 0;
  for (unsigned i = 1; i < streams_.count() && phase_ == Phase::kUp && share.left > 0; ++i) {
    const unsigned index = 1 + (next_bulk_ + i) % (streams_.count() - 1);
    if (streams_[index].stream == nullptr) continue;
    std::size_t moved = send_on(index, std::min(share.step, share.left));
    if (phase_ == Phase::kUp) moved += receive_on(index, std::min(share.step, share.left));
    share.left -= std::min<std::uint64_t>(share.left, moved);
    streams_[index].note_progress(moved, now);
    work += moved;
  }
  ++next_bulk_;
  return work;
}

std::size_t StreamPath::send_on(unsigned index, std::uint64_t bytes_max) {
  PathStreams::Lane& lane = streams_[index];
  if (machine_->has_unreleased(index)) machine_->sent(index, 0, lane.released());
  if (lane.owner.blocked && !lane.owner.hot) return 0;
  if (!machine_->fill(index, bytes_max)) return 0;
  // Room for heads beyond the limit, so that a chunk of just that size goes in one call.
  const std::size_t count = machine_->gather(index, shared_.parts, bytes_max + kFrameRoom);
  const std::span<const iovec> parts(shared_.parts.data(), count);
  const Moved moved = lane.stream->send(parts);
  shared_.watch.count(moved.bytes);
  if (moved.closed) {
    lose(index, ended(moved, *lane.stream));
    return 1;
  }
  lane.owner.blocked = moved.bytes < sum(parts);
  machine_->sent(index, moved.bytes, lane.released());
  if (moved.bytes > 0) watch_->note_spoken();
  if (index == 0 && moved.bytes > 0) ack_turns_ = 0;
  return moved.bytes;
}

std::size_t StreamPath::receive_on(unsigned index, std::uint64_t bytes_max) {
  PathStreams::Lane& lane = streams_[index];
  if (!(lane.owner.readable || lane.owner.hot) || !machine_->wants(index)) return 0;
  const std::size_t count = machine_->landing(index, shared_.parts, bytes_max);
  const Moved moved = lane.stream->receive({shared_.parts.data(), count});
  shared_.watch.count(moved.bytes);
  if (moved.closed) {
    lose(index, ended(moved, *lane.stream));
    return 1;
  }
  lane.owner.readable = moved.bytes + moved.placed > 0;
  if (!lane.owner.readable) return 0;
  watch_->note_heard();
  Status status = streams_.landed(index);
  if (status.ok() && moved.bytes > 0) status = machine_->received(index, moved.bytes);
  if (!status.ok()) go_down(status);
  return std::max<std::size_t>(moved.bytes, 1);
}

void StreamPath::answer_news(Instant now) {
  const ControlNews news = machine_->take_news();
  if (news.ping) static_cast<void>(machine_->pong(news.ping_nonce));
  if (news.pong) watch_->on_pong(news.pong_nonce, now);
  if (news.renewal) take_identity(news.identity);
  if (news.bye && phase_ == Phase::kUp) take_goodbye(*news.bye);
}

// A path lasts as long as its peer's certificate. What the peer did before stays valid.
void StreamPath::watch_identity(Instant now) {
  if (Status status = identity_.turn(now, name_); !status.ok()) {
    HAWSER_LOG(shared_.context.log, kWarn, "{}: the path to {} ends: {}", shared_.options.backend, name_,
               status.to_string());
    machine_->bye(Code::kOk, "its identity does not hold any more");
    static_cast<void>(send_last_words());
    go_down(status.with_scope(Scope::kPath).with_peer(name_), false);
    return;
  }
  const std::optional<std::string> renewal = identity_.renewal();
  if (!renewal || !machine_->tell_identity(base::as_bytes(*renewal))) return;  // Without room: at the next look.
  identity_.note_told();
  static_cast<void>(send_on(0, kControlStep));
}

void StreamPath::take_identity(const std::string& proof) {
  if (Status status = identity_.renewed(base::as_bytes(proof), name_); !status.ok()) {
    go_down(status.with_scope(Scope::kPath).with_peer(name_));
    return;
  }
  HAWSER_LOG(shared_.context.log, kInfo, "{}: {} renewed its certificate: {}", shared_.options.backend, name_,
             identity_.describe());
}

void StreamPath::take_goodbye(const wire::PathBye& bye) {
  // An agent that closes is gone; one that only drops this path is not.
  const Scope scope = bye.code == Code::kOk ? Scope::kPath : Scope::kPeer;
  go_down(Status(Code::kDisconnected, base::format("{} said goodbye: {}", name_, base::shown(bye.reason)))
              .with_scope(scope)
              .with_peer(name_));
}

// A hello, and even a proof, costs nothing: whoever does not go on gives its place and its descriptors back. Nobody was
// told of it, so no peer is blamed.
void StreamPath::watch_opener(Instant now) {
  is_held_ = shared_.events.is_held(this);
  if (!is_held_) {
    deadline_ = Instant::max();
    shared_.lobby.leave(this);
  } else if (now >= deadline_) {
    go_down(lost(Status(Code::kTimedOut, "it said nothing after its hello")));
  }
}

void StreamPath::watch_peer(Instant now) {
  watch_->set_busy(awaited_ || machine_->busy(), now);
  if (watch_->take_heard(now)) shared_.events.path_heard(this);
  if (watch_->owes_sign(now, machine_->has_unsent(0))) {
    static_cast<void>(machine_->pong(0));  // The answer to no ping.
    static_cast<void>(send_on(0, kControlStep));
  }
  const proto::DetectorAction action = watch_->poll(now);
  if (action.kind == proto::DetectorAction::Kind::kNone) return;
  const bool ends = action.kind == proto::DetectorAction::Kind::kSuspect && base::planted(base::Planted::kSilenceEnds);
  if (action.kind == proto::DetectorAction::Kind::kFailed || ends) {
    go_down(silence_of(name_, action.silent).with_scope(Scope::kPeer));
    return;
  }
  if (watch_->may_ask(machine_->has_unsent(0))) static_cast<void>(machine_->ping(action.nonce));
  static_cast<void>(send_on(0, kControlStep));
  if (phase_ != Phase::kUp || action.kind != proto::DetectorAction::Kind::kSuspect || is_held_) return;
  watch_->note_told();
  shared_.events.path_silent(this, silence_of(name_, action.silent).with_scope(Scope::kPath));
}

void StreamPath::watch_memory(Instant now) {
  if (!machine_->awaits_memory()) {
    quiet_by_ = Instant::max();
  } else if (quiet_by_ == Instant::max()) {
    quiet_by_ = now + kAnswerPeriod;
  } else if (now >= quiet_by_) {
    quiet_by_ = now + kAnswerPeriod;
    if (machine_->next_memory_period()) return;
    go_down(
        Status(Code::kDisconnected,
               base::format("{} did not take in time what was sent of memory that was then cancelled or closed", name_))
            .with_scope(Scope::kPath)
            .with_peer(name_));
  }
}

std::size_t StreamPath::turn_closing(Instant now) {
  const std::size_t sent = send_last_words();
  if (phase_ != Phase::kClosing) return sent;
  const bool done = !machine_->has_last_words() && streams_.is_flushed(0, machine_->bulk_messages_out());
  if (done || now >= deadline_) {
    go_down(Status(Code::kDisconnected, "this agent closed the path").with_peer(name_), !done);
  }
  return sent + 1;
}

std::size_t StreamPath::send_last_words() {
  std::size_t sent = send_on(0, kControlStep);
  const unsigned bulk = machine_->bulk_messages_out();
  if (bulk != 0 && streams_[bulk].stream != nullptr) sent += send_on(bulk, kControlStep);
  streams_.each_link([&](unsigned stream, const PathStreams::Lane& lane) {
    if (lane.stream != nullptr) sent += send_on(stream, kControlStep);
  });
  return sent;
}

// A peer that goes closes all its streams, and this may be the first whose end is seen. What it said before, its
// goodbye last, is on stream 0 by now, or behind it on those of messages.
void StreamPath::lose(unsigned index, const Status& why) {
  if (index != 0) hear_last_words(0, kLastWordsSteps);
  if (phase_ == Phase::kUp && machine_->has_news()) {
    if (const ControlNews news = machine_->take_news(); news.bye) take_goodbye(*news.bye);
  }
  if (phase_ == Phase::kUp && machine_->awaits_words()) {
    streams_[index].stream->close(true);
    streams_[index].stream.reset();
    return begin_hearing();
  }
  for (unsigned other = 1; other < streams_.count(); ++other) {
    if (other != index && machine_->may_carry_messages(other)) hear_last_words(other, kLastWordsSteps / kStreamsMax);
  }
  streams_.each_link([&](unsigned other, const PathStreams::Lane&) {
    if (other != index) hear_last_words(other, kLastWordsSteps / kStreamsMax);
  });
  if (phase_ == Phase::kUp && !asks_at_.empty() && is_known()) return begin_asking(lost(why));
  go_down(lost(why));  // If it is not down already.
}

std::size_t StreamPath::hear_last_words(unsigned index, int steps) {
  PathStreams::Lane& lane = streams_[index];
  std::size_t bytes = 0;
  for (int step = 0; step < steps && (phase_ == Phase::kUp || phase_ == Phase::kHearing); ++step) {
    if (lane.stream == nullptr || !machine_->wants(index)) break;
    const std::size_t count = machine_->landing(index, shared_.parts, kControlStep);
    const Moved moved = lane.stream->receive({shared_.parts.data(), count});
    shared_.watch.count(moved.bytes);
    bytes += moved.bytes;
    lane.owner.readable = moved.bytes + moved.placed > 0;
    if (moved.closed && index != 0) lane.stream.reset();
    if (moved.bytes + moved.placed == 0) break;
    Status status = streams_.landed(index);
    if (status.ok() && moved.bytes > 0) status = machine_->received(index, moved.bytes);
    if (!status.ok()) go_down(status);
  }
  return bytes;
}

// The peer said goodbye, and messages that it sent before are still on their way on another stream.
void StreamPath::begin_hearing() {
  phase_ = Phase::kHearing;
  streams_.stop_landing();
  deadline_ = Instant::max();
  activate();
}

std::size_t StreamPath::turn_hearing(Instant now) {
  if (deadline_ == Instant::max()) deadline_ = now + kHearPatience;
  if (Status status = machine_->begin_turn(); !status.ok()) {
    go_down(status);
    return 1;
  }
  std::size_t work = 0;
  bool may_come = false;
  // One that waits for others brings nothing, nor is its end seen: it counts while the lane has to poll.
  const auto may_bring = [this](unsigned stream) {
    return streams_[stream].stream != nullptr && (machine_->wants(stream) || machine_->awaits_poll());
  };
  for (unsigned index = 1; index < streams_.count() && phase_ == Phase::kHearing; ++index) {
    if (!machine_->may_carry_messages(index)) continue;
    work += hear_last_words(index, kHearSteps);
    may_come = may_come || may_bring(index);
  }
  streams_.each_link([&](unsigned stream, const PathStreams::Lane&) {
    if (phase_ == Phase::kHearing) work += hear_last_words(stream, kHearSteps);
    may_come = may_come || may_bring(stream);
  });
  if (phase_ == Phase::kHearing) watch_memory(now);
  if (phase_ != Phase::kHearing || (machine_->awaits_words() && may_come && now < deadline_)) return work;
  take_goodbye(*machine_->take_news(true).bye);
  return work + 1;
}

/// Whether its opener still listens: see OpenerQuestion.
void StreamPath::begin_asking(const Status& why) {
  phase_ = Phase::kAsking;
  lost_why_ = why;
  streams_.close_all(true);
  question_.emplace(shared_.network, asks_at_, streams_.owner_of_question());
  activate();
}

std::size_t StreamPath::turn_asking(Instant now) {
  if (!question_->is_due(now)) return 0;
  const OpenerQuestion::Answer answer = question_->turn(now);
  if (answer == OpenerQuestion::Answer::kEnded) go_down(opener_ended());
  if (answer == OpenerQuestion::Answer::kLives) go_down(lost_why_);
  return 1;
}

Status StreamPath::opener_ended() const {
  return Status(Code::kDisconnected,
                base::format("the process of {} ended: nobody listens at {} any more", name_, asks_at_))
      .with_scope(Scope::kPeer)
      .with_peer(name_)
      .because(lost_why_);
}

Status StreamPath::lost(const Status& why) const {
  return Status(Code::kDisconnected, base::format("the connection to {} was lost", name_))
      .with_scope(Scope::kPath)
      .with_peer(name_)
      .because(why);
}

}  // namespace hawser::backend::stream
