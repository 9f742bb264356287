// The port's door: connections that peers opened, until their hello made them a path's.

#include <algorithm>

#include "backend/hello_identity.h"
#include "backend/stream/cover.h"
#include "backend/stream/stream_port.h"
#include "base/format.h"
#include "base/planted.h"
#include "base/try.h"

namespace hawser::backend::stream {
namespace {

/// How long a connection may take for each stage: its hello, its proof, the answer to what is refused.
constexpr Duration kStagePatience = std::chrono::seconds(5);
constexpr Duration kRefusalPatience = std::chrono::seconds(1);
/// Accepted in one turn.
constexpr int kAdmitMax = 16;
constexpr std::size_t kReasonMax = 200;
/// In the place of the agent's name, which a hello has to have.
constexpr std::string_view kNoName = "-";
/// A kind of log line; the others are the numbers of their codes.
constexpr std::uint64_t kGaveWay = 1000;
/// Between two lines of the log that say that descriptors ran out.
constexpr Duration kShortageToldEvery = std::chrono::seconds(10);

}  // namespace

void StreamPort::admit(Instant now) {
  for (int i = 0; i < kAdmitMax; ++i) {
    lobby_full_ = !lobby_.has_room(now);
    if (lobby_full_) {
      shared_.next_due = std::min(shared_.next_due, lobby_.next_room());
      return;
    }
    std::unique_ptr<Stream> stream = network_->accept();
    if (stream == nullptr) {
      acceptable_ = false;
      if (network_->turned_away() != told_away_) tell_of_shortage(now);
      return;
    }
    take_in(std::move(stream), now);
  }
}

void StreamPort::take_in(std::unique_ptr<Stream> stream, Instant now) {
  const bool is_kin = stream->far_end(nullptr) == base::FarEnd::kSameUser;
  auto knock = std::make_unique<Knock>();
  knock->is_kin = is_kin;
  const Lobby::Guest out = lobby_.enter(knock.get(), stream->source(), is_kin, now);
  knock->shake = std::make_unique<Handshake>(std::move(stream), versions_of(context_.identity), context_.authenticator);
  knock->owner.readable = true;
  knock->deadline = base::planted(base::Planted::kStrangerKept) ? Instant::max() : now + kStagePatience;
  knock->shake->stream().owner = &knock->owner;
  shared_.next_due = std::min(shared_.next_due, knock->deadline);
  knocks_.push_back(std::move(knock));
  if (out == nullptr) return;
  admissions_.gave_way();
  if (const auto held_back = line_gate_.pass_kind(kGaveWay, now)) {
    HAWSER_LOG(context_.log, kInfo, "{}: too many connections prove nothing: the oldest gave way{}", options_.backend,
               base::LineGate::more(*held_back));
  }
  send_off(out);
}

/// It gave its place to another.
void StreamPort::send_off(Lobby::Guest guest) {
  const auto found = std::ranges::find_if(knocks_, [guest](const auto& knock) { return knock.get() == guest; });
  if (found != knocks_.end()) {
    (*found)->shake->stream().close(true);
    knocks_.erase(found);
    return;
  }
  for (const auto& path : paths_) {
    if (path.get() != guest) continue;
    path->go_down(Status(Code::kDisconnected, "its place was given to another").with_scope(Scope::kPath));
  }
  drop_silent_dead();
}

void StreamPort::tell_of_shortage(Instant now) {
  if (now < tell_shortage_at_) return;
  tell_shortage_at_ = now + kShortageToldEvery;
  HAWSER_LOG(context_.log, kWarn, "{}: {} connections were turned away: all descriptors of this process are in use, {}",
             options_.backend, network_->turned_away() - told_away_, "raise RLIMIT_NOFILE (`ulimit -n`)");
  told_away_ = network_->turned_away();
}

std::size_t StreamPort::turn_knocks(Instant now) {
  const std::size_t before = knocks_.size();
  std::erase_if(knocks_, [this, now](const std::unique_ptr<Knock>& knock) {
    if (!knock->owner.readable && now < knock->deadline) return false;
    if (!turn_knock(*knock, now)) return false;
    lobby_.leave(knock.get());
    return true;
  });
  return before - knocks_.size();
}

/// An opener of this user asks the kernel whose the refusal is before it believes it: so its connection stays until it
/// has read that and closes. True when it is over.
bool StreamPort::see_off(Knock& knock, Instant now) {
  const bool is_under_way = knock.shake->linger().ok() && now < knock.deadline;
  if (is_under_way && (knock.is_kin || !knock.shake->said())) return false;
  knock.shake->stream().close(!knock.shake->said());
  return true;
}

// True when there is nothing more to do with it.
bool StreamPort::turn_knock(Knock& knock, Instant now) {
  knock.owner.readable = false;
  if (context_.authenticator != nullptr) context_.authenticator->look(now);
  if (knock.refused) return see_off(knock, now);
  Status status = knock.shake->turn();
  // It connected to several places of ours, and uses another.
  if (status.code() == Code::kDisconnected && knock.shake->is_silent()) {
    knock.shake->stream().close(true);
    return true;
  }
  if (status.ok() && now >= knock.deadline) {
    const bool heard = knock.shake->heard();
    status = Status(Code::kTimedOut, heard ? "it did not prove itself in time" : "it said no hello in time");
  }
  if (!status.ok()) {
    log_turned_away(knock, status, now);
    knock.shake->stream().close(true);
    return true;
  }
  if (!knock.shake->heard()) return false;
  const Status why = knock.shake->has_spoken() ? come_in(knock, now) : heard(knock, now);
  if (why.ok()) return knock.shake == nullptr;  // Else its proof is awaited.
  refuse(knock, why, now);
  return turn_knock(knock, now);
}

/// Its hello came.
Status StreamPort::heard(Knock& knock, Instant now) {
  if (!knock.shake->misfit().ok()) return knock.shake->misfit();
  const wire::Hello& hello = knock.shake->hello();
  HAWSER_TRY(check_hello(hello));
  HAWSER_TRY(check_cover(hello, knock.shake->stream(), context_.security));
  const bool is_open = context_.security == Security::kNone;
  Handshake& shake = *knock.shake;
  // What is checked of a session is told to nobody who is not proven. Without a proof the answer is the verdict, and
  // what the session supersedes must not land any more when it leaves (B6).
  HAWSER_TRY(shake.admit(answer_to(hello), context_.identity.admission, is_open, *network_));
  if (!shake.awaits_proof()) return join(knock, now);
  knock.owner.readable = true;
  knock.deadline = now + kStagePatience;
  shared_.next_due = std::min(shared_.next_due, knock.deadline);
  return shake.turn();
}

Status StreamPort::check_hello(const wire::Hello& hello) const {
  const Identity& us = context_.identity;
  const bool another = hello.expects != us.incarnation && !base::planted(base::Planted::kStaleIncarnation);
  if (!hello.expects.is_zero() && another) {
    return Status(Code::kDisconnected, base::format("{} is another incarnation than the one looked for", us.name));
  }
  if (hello.status != Code::kOk || hello.session.is_zero() || hello.token.is_zero() || hello.incarnation.is_zero()) {
    return Status(Code::kCorrupt, "the hello names no session, token or incarnation");
  }
  return Status();
}

/// Its proof came, if all of it did.
Status StreamPort::come_in(Knock& knock, Instant now) {
  if (knock.shake->awaits_proof()) return Status();
  HAWSER_TRY(knock.shake->check_proof());
  return join(knock, now);
}

/// It is proven as far as it has to be: it opens a session, or is one more stream of one.
Status StreamPort::join(Knock& knock, Instant now) {
  return knock.shake->hello().stream == 0 ? open_session(knock, now) : attach_stream(knock, now);
}

/// What the opener of a session has said and proven.
PeerClaim StreamPort::claim_of(Handshake& shake) const {
  const wire::Hello& hello = shake.hello();
  const std::shared_ptr<identity::PeerIdentity>& shown = shake.identity().peer;
  PeerClaim claim{.incarnation = hello.incarnation, .public_key = hello.public_key, .name = hello.name};
  if (shown != nullptr) claim.identity = shown->holder.id.text();
  claim.is_key_proven = shake.stream().cover() == Cover::kTls && context_.security != Security::kNone;
  return claim;
}

Status StreamPort::open_session(Knock& knock, Instant now) {
  const wire::Hello& hello = knock.shake->hello();
  if (closing_) return Status(Code::kDisconnected, "the agent is closing");
  if (hello.streams < 1 || hello.streams > kStreamsMax) {
    return Status(Code::kUnsupported,
                  base::format("{} streams were asked for, 1 to {} are possible", hello.streams, kStreamsMax));
  }
  for (const auto& path : paths_) {
    if (path->is_session(hello.session)) return Status(Code::kInvalid, "a session of that number exists");
  }
  const PeerClaim claim = claim_of(*knock.shake);
  HAWSER_TRY(context_.guard->check(claim, now));
  // What the new session replaces must not land any more when the answer leaves (B6).
  // Who names a session that stands here is its peer: the agent hears of the new one together with the old one's end.
  const bool is_known_peer = !hello.supersedes.is_zero() && supersede(hello);
  HAWSER_TRY_ASSIGN(PeerSeat seat, context_.guard->admit(claim, now));
  auto path = std::make_unique<StreamPath>(shared_);
  const bool is_unproven = knock.shake->admission() == wire::Admission::kNone && !is_known_peer;
  if (is_unproven) lobby_.rename(&knock, path.get());
  if (knock.shake->has_proof()) knock.shake->say_verdict(Status());
  path->accept(std::move(knock.shake), is_known_peer, std::move(seat), now);
  admissions_.let_in();
  shared_.next_due = std::min(shared_.next_due, path->next_deadline());
  paths_.push_back(std::move(path));
  return Status();
}

Status StreamPort::attach_stream(Knock& knock, Instant now) {
  const wire::Hello& hello = knock.shake->hello();
  for (const auto& path : paths_) {
    // The key is the one that TLS proved on this very stream, where there is TLS: a token alone is nobody's.
    const bool same = path->is_session(hello.session) && path->token() == hello.token &&
                      path->peer().incarnation == hello.incarnation && path->peer().public_key == hello.public_key;
    if (!same) continue;
    HAWSER_TRY(path->can_attach(hello.stream));
    if (knock.shake->has_proof()) knock.shake->say_verdict(Status());
    path->attach(std::move(knock.shake), now);
    return Status();
  }
  return Status(Code::kDenied, "no such session");
}

/// True: there was such a session.
bool StreamPort::supersede(const wire::Hello& hello) {
  if (base::planted(base::Planted::kSupersededLands)) return false;
  bool found = false;
  for (const auto& path : paths_) {
    if (!path->is_session(hello.supersedes) || path->peer().incarnation != hello.incarnation) continue;
    found = found || (path->is_known() && !path->is_down());
    path->go_down(Status(Code::kDisconnected, base::format("{} opened a new session in place of this one", hello.name))
                      .with_scope(Scope::kPath)
                      .with_peer(hello.name));
  }
  return found;
}

/// The parts that every answer has.
wire::Hello StreamPort::own_hello() const {
  const Identity& us = context_.identity;
  wire::Hello answer = hello_of(us);
  answer.security = level_of(context_.security);
  answer.born = us.born;
  answer.listen = options_.listen;
  return answer;
}

wire::Hello StreamPort::answer_to(const wire::Hello& hello) const {
  wire::Hello answer = own_hello();
  answer.stream = hello.stream;
  answer.streams = hello.streams;
  answer.session = hello.session;
  return answer;
}

/// Before a hello was heard: for peers that are turned away unheard.
wire::Hello StreamPort::refusal(const Status& why) const {
  wire::Hello answer = own_hello();
  answer.status = why.code();
  answer.reason = std::string(why.message().substr(0, kReasonMax));
  return answer;
}

void StreamPort::refuse(Knock& knock, const Status& why, Instant now) {
  log_turned_away(knock, why, now);
  if (knock.shake->has_proof()) {
    knock.shake->say_verdict(why);
  } else {
    // Others on the network may hear what is said in clear: it tells no more than that, unless all may know all.
    const bool is_overheard = knock.shake->stream().cover() == Cover::kNone && context_.security != Security::kNone;
    wire::Hello answer = is_overheard ? wire::Hello{.name = std::string(kNoName)} : answer_to(knock.shake->hello());
    answer.session = knock.shake->hello().session;
    answer.status = why.code();
    answer.reason = std::string(why.message().substr(0, kReasonMax));
    knock.shake->say(std::move(answer));
  }
  knock.refused = true;
  knock.deadline = std::min(knock.deadline, now + kRefusalPatience);
  shared_.next_due = std::min(shared_.next_due, knock.deadline);
}

/// Strangers can cause such lines at will: one for each kind and second.
void StreamPort::log_turned_away(const Knock& knock, const Status& why, Instant now) {
  admissions_.turned_away(why);
  const auto held_back = line_gate_.pass_kind(static_cast<std::uint64_t>(why.code()), now);
  if (!held_back) return;
  const std::string& name = knock.shake->hello().name;
  HAWSER_LOG(context_.log, kInfo, "{}: turned {} away ({}): {}{}", options_.backend,
             name.empty() ? "a connection" : name, knock.shake->stream().describe(), why.to_string(),
             base::LineGate::more(*held_back));
}

}  // namespace hawser::backend::stream
