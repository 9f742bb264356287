// The port's door: connections that peers opened, until their hello made them a path's.

#include <algorithm>

#include "backend/stream/stream_port.h"
#include "base/format.h"
#include "base/planted.h"

namespace hawser::backend::stream {
namespace {

/// Unproven connections at once, and how long each may take.
constexpr std::size_t kKnocksMax = 64;
constexpr Duration kKnockPatience = std::chrono::seconds(5);
/// Accepted in one turn.
constexpr int kAdmitMax = 16;
/// Between two lines of the log that say that descriptors ran out.
constexpr Duration kShortageToldEvery = std::chrono::seconds(10);

}  // namespace

void StreamPort::admit(Instant now) {
  for (int i = 0; i < kAdmitMax; ++i) {
    std::unique_ptr<Stream> stream = network_->accept();
    if (stream == nullptr) {
      acceptable_ = false;
      if (network_->turned_away() != told_away_) tell_of_shortage(now);
      return;
    }
    if (knocks_.size() == kKnocksMax) {  // The oldest has had its chance.
      knocks_.front()->shake->stream().close(true);
      knocks_.erase(knocks_.begin());
    }
    auto knock = std::make_unique<Knock>();
    knock->shake = std::make_unique<Handshake>(std::move(stream), versions_of(context_.identity));
    knock->owner.readable = true;
    knock->deadline = now + kKnockPatience;
    knock->shake->stream().owner = &knock->owner;
    shared_.next_due = std::min(shared_.next_due, knock->deadline);
    knocks_.push_back(std::move(knock));
  }
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
    return turn_knock(*knock, now);
  });
  return before - knocks_.size();
}

// True when there is nothing more to do with it.
bool StreamPort::turn_knock(Knock& knock, Instant now) {
  knock.owner.readable = false;
  const Status status = knock.shake->turn();
  if (knock.refused) {
    if (status.ok() && !knock.shake->said() && now < knock.deadline) return false;
    knock.shake->stream().close(!knock.shake->said());
    return true;
  }
  if (!status.ok() && knock.shake->is_silent()) {  // It connected to several places of ours, and uses another.
    knock.shake->stream().close(true);
    return true;
  }
  if (!status.ok() || now >= knock.deadline) {
    HAWSER_LOG(context_.log, kInfo, "{}: turned a connection away ({}): {}", options_.backend,
               knock.shake->stream().describe(), status.ok() ? "it said no hello in time" : status.to_string());
    knock.shake->stream().close(true);
    return true;
  }
  if (!knock.shake->heard()) return false;
  const Status why = heard(knock, now);
  if (why.ok()) return true;
  refuse(knock, why, now);
  return turn_knock(knock, now);
}

Status StreamPort::heard(Knock& knock, Instant now) {
  if (!knock.shake->misfit().ok()) return knock.shake->misfit();
  const wire::Hello& hello = knock.shake->hello();
  const Identity& us = context_.identity;
  const bool another = hello.expects != us.incarnation && !base::planted(base::Planted::kStaleIncarnation);
  if (!hello.expects.is_zero() && another) {
    return Status(Code::kDisconnected, base::format("{} is another incarnation than the one looked for", us.name));
  }
  if (hello.security != 0) {
    return Status(Code::kUnsupported, "the opener demands encryption, which this build does not have");
  }
  if (hello.status != Code::kOk || hello.session.is_zero() || hello.token.is_zero() || hello.incarnation.is_zero()) {
    return Status(Code::kCorrupt, "the hello names no session, token or incarnation");
  }
  return hello.stream == 0 ? open_session(knock, now) : attach_stream(knock, now);
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
  // What the new session replaces must not land any more when the answer leaves (B6).
  if (!hello.supersedes.is_zero()) supersede(hello);
  auto path = std::make_unique<StreamPath>(shared_);
  path->accept(std::move(knock.shake), now);
  shared_.next_due = std::min(shared_.next_due, path->next_deadline());
  paths_.push_back(std::move(path));
  return Status();
}

Status StreamPort::attach_stream(Knock& knock, Instant now) {
  const wire::Hello& hello = knock.shake->hello();
  for (const auto& path : paths_) {
    const bool same = path->is_session(hello.session) && path->token() == hello.token &&
                      path->peer().incarnation == hello.incarnation;
    if (same) return path->attach(knock.shake, now);
  }
  return Status(Code::kDenied, "no such session");
}

void StreamPort::supersede(const wire::Hello& hello) {
  if (base::planted(base::Planted::kSupersededLands)) return;
  for (const auto& path : paths_) {
    if (!path->is_session(hello.supersedes) || path->peer().incarnation != hello.incarnation) continue;
    path->go_down(Status(Code::kDisconnected, base::format("{} opened a new session in place of this one", hello.name))
                      .with_scope(Scope::kPath)
                      .with_peer(hello.name));
  }
}

wire::Hello StreamPort::refusal(const Status& why) const {
  const Identity& us = context_.identity;
  wire::Hello answer;
  answer.version_min = us.version_min;
  answer.version_max = us.version_max;
  answer.driven = us.driven;
  answer.incarnation = us.incarnation;
  answer.public_key = us.public_key;
  answer.name = us.name;
  answer.status = why.code();
  answer.reason = std::string(why.message().substr(0, 200));
  return answer;
}

void StreamPort::refuse(Knock& knock, const Status& why, Instant now) {
  HAWSER_LOG(context_.log, kInfo, "{}: turned {} away ({}): {}", options_.backend, knock.shake->hello().name,
             knock.shake->stream().describe(), why.to_string());
  wire::Hello answer = refusal(why);
  answer.stream = knock.shake->hello().stream;
  answer.streams = knock.shake->hello().streams;
  answer.session = knock.shake->hello().session;
  knock.shake->say(answer);
  knock.refused = true;
  knock.deadline = std::min(knock.deadline, now + std::chrono::seconds(1));
}

}  // namespace hawser::backend::stream
