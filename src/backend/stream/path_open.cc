// How a path comes up: candidates, hellos, further streams.

#include <algorithm>
#include <bit>

#include "backend/stream/cover.h"
#include "backend/stream/path.h"
#include "base/format.h"
#include "base/id128.h"
#include "base/planted.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::backend::stream {
namespace {

/// How long an answer is waited for when nobody set a deadline.
constexpr Duration kHelloPatience = std::chrono::seconds(5);
/// From an opener's hello, or proof, to its first message.
constexpr Duration kFirstWordPatience = std::chrono::seconds(5);
/// Once another incarnation of the peer answered somewhere, the other places have so long to lead to the right one.
constexpr Duration kOthersPatience = std::chrono::milliseconds(500);

Status restarted(const std::string& name, const wire::Hello& hello) {
  return Status(Code::kDisconnected,
                base::format("{} restarted: another incarnation of {} answers where it was", name, hello.name))
      .with_scope(Scope::kPeer)
      .with_advice("fetch the peer's new card and plan again");
}

}  // namespace

Status StreamPath::open(const PathTarget& target, Instant now) {
  HAWSER_TRY_ASSIGN(std::vector<std::string> places,
                    shared_.network.candidates(target.address, !target.admission.is_zero()));
  is_here_ = shared_.network.is_here(target.address);
  name_ = target.peer.empty() ? base::shown(target.address) : std::string(target.peer);
  peer_.name = target.peer;
  expects_ = target.incarnation;
  supersedes_ = target.supersedes;
  known_ = {.secret = target.admission, .key = target.public_key};
  session_ = {shared_.rng.u64(), shared_.rng.u64() | 1};
  token_ = base::random_id128();
  streams_ = shared_.options.connections;
  deadline_ = target.deadline == Instant::max() ? now + kHelloPatience : target.deadline;
  places_note_ = shared_.network.left_out(target.address);
  race_owner_ = StreamOwner{.path = this};
  race_ = std::make_unique<ConnectRace>(shared_.network, &race_owner_, std::move(places), known_, now, deadline_);
  activate();
  try_places(now);
  return Status();
}

void StreamPath::try_places(Instant now) {
  race_->turn(now);
  if (std::unique_ptr<Stream> stream = race_->take(now)) {
    auto shake = std::make_unique<Handshake>(std::move(stream), versions_of(shared_.context.identity),
                                             shared_.context.authenticator);
    adopt(0, std::move(shake), race_->hello_deadline());
  } else if (race_->is_over()) {
    go_down(why_nowhere().with_peer(name_));
  }
}

/// No place led to the peer.
Status StreamPath::why_nowhere() {
  const Status why = verdict_of(*race_, name_);
  if (!restarted_.ok()) return restarted_.because(why);
  if (!misfit_.ok() && !may_change(*race_)) return misfit_.because(why);
  // Refused wherever it was tried: here its process is gone. Elsewhere it may be so, too; the agent asks again.
  refused_ = why.scope() == Scope::kPeer;
  return refused_ && !is_here_ ? why.with_scope(Scope::kPath) : why;
}

void StreamPath::reject_place(const Status& why, Instant now) {
  HAWSER_LOG(shared_.context.log, kDebug, "{}: {} is not reached at {}: {}", shared_.options.backend, name_,
             race_->place(), why.to_string());
  race_->reject(why);
  if (!restarted_.ok()) race_->hurry(now + kOthersPatience);
  try_places(now);
}

void StreamPath::adopt(unsigned index, std::unique_ptr<Handshake> shake, Instant deadline) {
  if (is_link_stream(index) && link_lanes_ == nullptr) link_lanes_ = std::make_unique<LinkLanes>();
  Lane& lane = this->lane(index);
  lane.owner = StreamOwner{.path = this, .index = index, .readable = true, .blocked = false};
  shake->stream().owner = &lane.owner;
  lane.shake = std::move(shake);
  lane.deadline = deadline;
  activate();
}

wire::Hello StreamPath::our_hello(unsigned index) const {
  const Identity& us = shared_.context.identity;
  wire::Hello hello;
  hello.version_min = us.version_min;
  hello.version_max = us.version_max;
  hello.driven = us.driven;
  hello.security = level_of(shared_.context.security);
  hello.stream = static_cast<std::uint8_t>(index);
  hello.streams = static_cast<std::uint8_t>(streams_);
  hello.incarnation = us.incarnation;
  hello.session = session_;
  hello.public_key = us.public_key;
  hello.born = us.born;
  hello.name = us.name;
  hello.listen = shared_.options.listen;
  hello.token = token_;
  hello.expects = expects_;
  if (index == 0) hello.supersedes = supersedes_;
  return hello;
}

void StreamPath::accept(std::unique_ptr<Handshake> shake, bool is_known_peer, PeerSeat seat, Instant now) {
  seat_ = std::move(seat);
  const wire::Hello& hello = shake->hello();
  is_known_peer_ = is_known_peer;
  inbound_ = true;
  session_ = hello.session;
  token_ = hello.token;
  supersedes_ = hello.supersedes;
  streams_ = hello.streams;
  learn(hello);
  learn_identity(shake->take_identity(), now);
  if (shared_.network.is_beside(shake->stream(), hello.listen)) asks_at_ = hello.listen;
  deadline_ = now + kHelloPatience;
  adopt(0, std::move(shake), deadline_);
}

Status StreamPath::can_attach(unsigned index) const {
  bool fits = phase_ == Phase::kUp && index < streams_ && !lanes_[index].is_there();
  if (phase_ == Phase::kUp && index < kAllStreamsMax && is_link_stream(index) && may_have_link_streams()) {
    fits =
        has_own_stream(link_of(index)) && (link_lanes_ == nullptr || !(*link_lanes_)[index - kStreamsMax].is_there());
  }
  return fits ? Status() : Status(Code::kInvalid, base::format("the session has no place for a stream {}", index));
}

void StreamPath::attach(std::unique_ptr<Handshake> shake, Instant now) {
  const unsigned index = shake->hello().stream;
  adopt(index, std::move(shake), now + kHelloPatience);
}

void StreamPath::learn(const wire::Hello& hello) {
  peer_.name = hello.name;
  peer_.incarnation = hello.incarnation;
  peer_.public_key = hello.public_key;
  peer_.born = hello.born;
  peer_.driven = hello.driven;
  peer_.version_min = hello.version_min;
  peer_.version_max = hello.version_max;
}

void StreamPath::learn_identity(ShownIdentity shown, Instant now) {
  if (shown.peer == nullptr) return;
  const identity::Speaker self = inbound_ ? identity::Speaker::kAcceptor : identity::Speaker::kOpener;
  identity_ = IdentityWatch(*shared_.context.authenticator, std::move(shown), self, now);
}

// Only its incarnation tells who answers: an address may lead to somebody else, as docker0's does on every host.
bool StreamPath::is_the_peer(const wire::Hello& hello) const {
  if (!expects_.is_zero()) {
    return hello.incarnation == expects_ || base::planted(base::Planted::kStaleIncarnation);
  }
  return peer_.name.empty() || hello.name == peer_.name;
}

Status StreamPath::check_answer(const wire::Hello& hello) const {
  const auto turned_away = [&] {
    return Status(hello.status, base::format("{} turned us away: {}", name_, base::shown(hello.reason)));
  };
  if (hello.status != Code::kOk && hello.incarnation.is_zero()) {  // In clear it names nobody.
    return turned_away().with_advice("give its address with its ticket (ADDRESS#TICKET), or load its card");
  }
  if (!is_the_peer(hello)) {
    if (hello.name == peer_.name) return restarted(name_, hello);
    return Status(Code::kDisconnected, base::format("another agent answers there, '{}'", base::shown(hello.name)));
  }
  if (hello.status != Code::kOk) return turned_away();
  if (hello.session != session_) return Status(Code::kCorrupt, base::format("{} answered for another session", name_));
  return Status();
}

std::size_t StreamPath::turn_opening(Instant now) {
  if (lanes_[0].shake == nullptr) try_places(now);
  if (lanes_[0].shake != nullptr) turn_shake(0, now);
  return 1;
}

/// A refusal proves nothing: one that a stranger on the peer's port may have said says nothing of the peer, which may
/// live elsewhere. So it is a place that leads to somebody else.
Status StreamPath::judge_answer(Handshake& shake) {
  Status status = shake.misfit();
  if (status.ok()) status = check_answer(shake.hello());
  if (status.ok()) status = check_cover(shake.hello(), shake.stream(), shared_.context.security);
  if (!status.ok() && (is_open() || shake.is_refusal_believable())) return status;
  if (status.ok()) status = shake.on_answer(is_open(), shared_.network);
  return status.ok() ? status : doubt(status);
}

Status StreamPath::doubt(const Status& why) {
  is_doubted_ = true;
  // Only who looked for whatever listens there is told that it may not come in.
  return Status(expects_.is_zero() ? Code::kDenied : Code::kDisconnected,
                base::format("who answers where {} should be is not proven to be it", name_))
      .with_scope(Scope::kPath)
      .with_advice(
          shared_.context.authenticator != nullptr
              ? "this agent has an identity, and lets in only those who show one by its authority"
              : "run both agents as one user, give this agent the peer's card, or, where everybody who can connect may "
                "have every key, open both with security `none`")
      .because(why);
}

Status StreamPath::step_shake(Lane& lane, Instant now) {
  Handshake& shake = *lane.shake;
  const bool speaks = !shake.has_spoken() && shake.stream().state() == StreamState::kOpen;
  if (speaks) HAWSER_TRY(shake.ask(our_hello(lane.owner.index), known_, is_open(), shared_.network));
  const bool had_heard = shake.heard();
  const Status moved = shake.turn();
  if (!moved.ok()) return shake.is_identity_doubted() ? doubt(moved) : moved;
  if (!inbound_ && shake.heard() && !had_heard) HAWSER_TRY(judge_answer(shake));
  if (is_through(shake) || now < lane.deadline) return Status();
  return Status(Code::kTimedOut, base::format("no answer from {} ({})", name_, shake.stream().describe()));
}

void StreamPath::turn_shake(unsigned index, Instant now) {
  Lane& lane = this->lane(index);
  lane.owner.readable = false;
  is_doubted_ = false;
  if (shared_.context.authenticator != nullptr) shared_.context.authenticator->look(now);
  const Status status = step_shake(lane, now);
  if (status.ok() && !is_through(*lane.shake)) return;
  if (!status.ok()) {
    shake_failed(index, status, now);
    return;
  }
  if (index == 0 && !inbound_) {
    learn(lane.shake->hello());
    learn_identity(lane.shake->take_identity(), now);
  }
  lane.stream = lane.shake->take_stream();
  lane.said = lane.shake->take_said();
  lane.shake.reset();
  lane.owner.readable = true;
  if (index == 0) {
    come_up(now);
  } else {
    machine_->open_stream(index);
  }
}

void StreamPath::shake_failed(unsigned index, const Status& why, Instant now) {
  Lane& lane = this->lane(index);
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
  if (inbound_ || (answered && is_the_peer(hello) && !is_doubted_)) {
    go_down(why.with_peer(name_));
    return;
  }
  if (answered && hello.name == peer_.name && !is_doubted_) restarted_ = why;
  if (is_misfit && !is_doubted_) misfit_ = why;
  reject_place(why, now);
}

// What explain and the log say of the places: where the peer was reached, and which others led elsewhere or nowhere.
void StreamPath::note_places(Instant now) {
  place_ = race_->place();
  if (const std::string losers = race_->losers(now); !losers.empty()) {
    places_note_ += (places_note_.empty() ? "" : "; ") + losers;
  }
  for (const ConnectRace::Failure& failure : race_->failures()) {
    places_note_ += base::format("{}{}: {}", places_note_.empty() ? "" : "; ", failure.place, failure.why.message());
  }
  race_.reset();
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
          .is_key_proven = lanes_[0].stream->cover() == Cover::kTls && !is_open()};
}

void StreamPath::come_up(Instant now) {
  phase_ = Phase::kUp;
  shared_.parts.resize(kPartsMax);
  name_ = peer_.name;
  if (identity_.is_on()) {
    HAWSER_LOG(shared_.context.log, kInfo, "{}: {} has proven to be {}", shared_.options.backend, name_,
               identity_.describe());
  }
  if (race_ != nullptr) note_places(now);
  if (seat_.account() == nullptr) seat_ = shared_.context.guard->seat(claim());
  is_held_ = inbound_ && !is_known_peer_;
  deadline_ = is_held_ ? now + kFirstWordPatience : Instant::max();
  machine_.emplace(shared_.context.regions, shared_.events, this,
                   MachineOptions{.peer = name_,
                                  .streams = streams_,
                                  .small_max = shared_.options.small_max,
                                  .has_identity = identity_.is_on(),
                                  .is_apart = may_have_link_streams(),
                                  .account = seat_.account()},
                   &shared_.files);
  detector_.emplace(proto::DetectorOptions{.interval = shared_.context.heartbeat,
                                           .missed = kMissedMax,
                                           .patience = shared_.context.peer_timeout,
                                           .idle_factor = 10,
                                           .judged = peer_.driven},
                    now);
  sign_of_life_.emplace(shared_.context.heartbeat, now);
  told_up_ = true;
  last_heard_ = now;  // Its hello.
  shared_.events.path_up(this, &peer_, session_, inbound_, supersedes_, is_held_);
  if (!inbound_) open_further(now);
}

void StreamPath::open_further(Instant now) {
  for (unsigned index = 1; index < streams_; ++index) open_further_one(index, now);
}

void StreamPath::open_further_one(unsigned index, Instant now) {
  auto stream = shared_.network.connect(place_, known_);
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

}  // namespace hawser::backend::stream
